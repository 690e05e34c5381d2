// Products on CUDA cores: fp32 arithmetic in every type. A block computes a tile of C; a product of few tiles
// and a long k is cut along k, and the parts are added in ascending order, so that results do not depend on
// when blocks run.
#include <vector>

#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/cuda/gemm_mma.cuh"
#include "hstu/kernels/cuda/gemm_sm90.cuh"
#include "hstu/kernels/cuda/gemm_tile.cuh"
#include "hstu/kernels/cuda/part_sums.cuh"

namespace hstu::kernels::cuda {
namespace {

inline constexpr int kDepth = 32;  // of k at a time
// Rows and columns of C for each of 16 x 16 threads: 64 x 64 of a block, or where that leaves most
// multiprocessors without work 32 x 32. The sums have the same bits.
inline constexpr int kLargeEach = 4, kSmallEach = 2;
template <int kEach>
inline constexpr int kTile = 16 * kEach;
inline constexpr std::int64_t kFewBlocks = 132;
static_assert(kPlainTiles.rows == kTile<kLargeEach> && kPlainTiles.columns == kTile<kLargeEach> &&
              kPlainTiles.step == kDepth);

// A factor by its element (row, column) after the transposition.
template <typename N>
struct View {
  const N* data;
  std::int64_t row_stride, column_stride;
  __device__ float operator()(std::int64_t r, std::int64_t c) const {
    return to_float(data[r * row_stride + c * column_stride]);
  }
};
template <typename T>
View<Native<T>> view_of(const Factor<T>& factor) {
  if (factor.op == Op::none) return {native(factor.data), factor.stride, 1};
  return {native(factor.data), 1, factor.stride};
}

// The elements of a factor that a thread takes to shared memory in one turn, on their way in registers: they
// are read while the block computes with those before. Rows are those of A and columns those of B;
// neighbouring threads read neighbouring addresses, whichever way the factor is stored.
template <int kTile, typename N>
class Share {
 public:
  __device__ Share(View<N> factor, bool depth_is_contiguous, std::int64_t first, std::int64_t count)
      : factor_(factor), by_depth_(depth_is_contiguous), first_(first), count_(count) {}
  template <bool kIsA>
  __device__ void read(std::int64_t k0, std::int64_t k_end) {
#pragma unroll
    for (int j = 0; j < kShare; ++j) {
      const std::int64_t r = first_ + row(j), k = k0 + depth(j);
      element_[j] = r < count_ && k < k_end ? (kIsA ? factor_(r, k) : factor_(k, r)) : 0.0f;
    }
  }
  __device__ void leave(float (*tile)[kTile + 4]) const {
#pragma unroll
    for (int j = 0; j < kShare; ++j) tile[depth(j)][row(j)] = element_[j];
  }

 private:
  static constexpr int kShare = kTile * kDepth / 256;
  __device__ int row(int j) const {
    const int i = threadIdx.x + 256 * j;
    return by_depth_ ? i / kDepth : i % kTile;
  }
  __device__ int depth(int j) const {
    const int i = threadIdx.x + 256 * j;
    return by_depth_ ? i % kDepth : i / kTile;
  }

  View<N> factor_;
  bool by_depth_;
  std::int64_t first_, count_;
  float element_[kShare];
};

// One product of a launch.
template <typename N, typename Out>
struct Job {
  Extents e;
  View<N> a, b;
  Epilogue<Out> epilogue;
  float* parts;  // (parts, m, n): sums of each part of k; null: one part, which goes through the epilogue
  unsigned row_tiles, column_tiles;
  unsigned first = 0;  // block
};
inline constexpr int kMostJobs = 8;
template <typename N, typename Out>
struct Jobs {
  Job<N, Out> each[kMostJobs];
  int count = 0;
  unsigned blocks = 0;
};

template <int kTile>
using Staged = float[kDepth][kTile + 4];

// One tile of a job, and one part of k. With kSums the sums of the columns of B are one row more.
template <bool kSums, int kEach, typename N, typename Out>
__device__ void multiply_tile(const Job<N, Out>& job, unsigned block, Staged<kTile<kEach>>& tile_a,
                              Staged<kTile<kEach>>& tile_b) {
  const Extents& e = job.e;
  const std::int64_t row_tile = block % job.row_tiles, row0 = row_tile * kTile<kEach>,
                     column0 =
                         static_cast<std::int64_t>(block / job.row_tiles % job.column_tiles) * kTile<kEach>,
                     index = block / (job.row_tiles * job.column_tiles);
  const std::int64_t k_begin = index * e.depth, k_end = min(e.k, k_begin + e.depth);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  Share<kTile<kEach>, N> share_a(job.a, job.a.column_stride == 1, row0, e.m),
      share_b(job.b, job.b.column_stride != 1, column0, e.n);
  float sum[kEach][kEach] = {}, column_sum[kEach] = {};
  const auto read = [&](std::int64_t k0) {
    share_a.template read<true>(k0, k_end);
    share_b.template read<false>(k0, k_end);
  };
  read(k_begin);
  for (std::int64_t k0 = k_begin; k0 < k_end; k0 += kDepth) {
    share_a.leave(tile_a);
    share_b.leave(tile_b);
    __syncthreads();
    if (k0 + kDepth < k_end) read(k0 + kDepth);
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float x[kEach], y[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) x[i] = tile_a[k][ty * kEach + i], y[i] = tile_b[k][tx * kEach + i];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        if constexpr (kSums) column_sum[i] += y[i];
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
  const std::int64_t rows = e.m + (kSums ? 1 : 0);
  const auto part = [&](std::int64_t row, std::int64_t column) -> float& {
    return job.parts[(index * rows + row) * e.n + column];
  };
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t row = row0 + ty * kEach + i, column = column0 + tx * kEach + j;
      if (row >= e.m || column >= e.n) continue;
      if (job.parts != nullptr)
        part(row, column) = sum[i][j];
      else
        job.epilogue.put(row, column, sum[i][j]);
    }
  }
  if constexpr (kSums) {
    if (row_tile > 0 || ty > 0) return;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t column = column0 + tx * kEach + j;
      if (column >= e.n) continue;
      if (job.parts != nullptr)
        part(e.m, column) = column_sum[j];
      else
        job.epilogue.column_sums.put(column, column_sum[j]);
    }
  }
}

template <int kEach, typename N, typename Out>
__global__ void __launch_bounds__(256) multiply_tiles(const __grid_constant__ Jobs<N, Out> jobs) {
  hstu::cuda::wait_for_previous_launch();
  __shared__ Staged<kTile<kEach>> tile_a, tile_b;
  const Job<N, Out>& job = of_block(jobs);
  const unsigned block = blockIdx.x - job.first;
  if (job.epilogue.column_sums.to != nullptr)
    multiply_tile<true, kEach>(job, block, tile_a, tile_b);
  else
    multiply_tile<false, kEach>(job, block, tile_a, tile_b);
}

inline std::int64_t tiles_of(std::int64_t n, int each) {
  return (n + 16 * each - 1) / (16 * each);
}
// The division of k depends on large tiles alone, whichever are used. A short k takes less time than a launch
// that adds up its parts.
template <typename T, typename Out>
Parts division_of(const Product<T, Out>& p) {
  return parts_of(p.gemm.m, p.gemm.n, p.gemm.k, kPlainTiles, p.row_stable);
}

// C = or += alpha op(A) op(B), and perhaps sums of columns: the parts of such a product are sums of parts.
template <typename T, typename Out>
bool is_sum(const Product<T, Out>& p) {
  return p.gemm.alpha == 1 && (p.gemm.beta == 0 || p.gemm.beta == 1) && p.bias == nullptr &&
         p.residual == nullptr && !p.relu && p.mask == nullptr;
}

// The sums of the parts of a product, which are in `memory`.
template <typename T, typename Out>
void add_depths(const Product<T, Out>& p, const Parts& parts, Scratch<float> memory, CudaStream stream) {
  const Gemm<T, Out>& g = p.gemm;
  if constexpr (std::is_same_v<Out, float>) {
    if (is_sum(p)) {
      const std::int64_t stride = rows_of_part(p) * g.n;
      const PartSum sums[] = {
          {memory.data(), parts.count, stride, g.m * g.n, {g.c, g.beta != 0, p.late}, g.n, g.stride_c},
          sum_of(memory.data() + g.m * g.n, parts.count, stride, g.n, p.column_sums)};
      return add_parts(sums, std::move(memory), stream);
    }
  }
  add_parts_of_depth(p, parts, memory.data(), stream);
}

// On CUDA cores: at most kMostJobs products.
template <typename T, typename Out>
void multiply_plain(std::span<const Product<T, Out>> products, CudaStream stream) {
  std::int64_t blocks = 0;
  for (const Product<T, Out>& p : products)
    blocks += tiles_of(p.gemm.m, kLargeEach) * tiles_of(p.gemm.n, kLargeEach) * division_of(p).count;
  const int each = blocks < kFewBlocks ? kSmallEach : kLargeEach;
  Jobs<Native<T>, Native<Out>> jobs{};
  struct Divided {
    const Product<T, Out>& product;
    Parts parts;
    Scratch<float> memory;
  };
  std::vector<Divided> divided;
  for (const Product<T, Out>& p : products) {
    const Gemm<T, Out>& g = p.gemm;
    const std::int64_t row_tiles = tiles_of(g.m, each), column_tiles = tiles_of(g.n, each);
    const Parts parts = division_of(p);
    if (parts.count > 1)
      divided.push_back({p, parts, Scratch<float>(stream, parts.floats(rows_of_part(p), g.n))});
    const std::int64_t blocks_of_job = row_tiles * column_tiles * parts.count;
    require(blocks_of_job < (std::int64_t{1} << 31) - jobs.blocks, "a product of {} blocks is too large",
            blocks_of_job);
    jobs.each[jobs.count++] = {.e = {g.m, g.n, g.k, parts.depth},
                               .a = view_of(g.a),
                               .b = view_of(g.b),
                               .epilogue = epilogue_of(p),
                               .parts = parts.count > 1 ? divided.back().memory.data() : nullptr,
                               .row_tiles = static_cast<unsigned>(row_tiles),
                               .column_tiles = static_cast<unsigned>(column_tiles),
                               .first = jobs.blocks};
    jobs.blocks += static_cast<unsigned>(blocks_of_job);
  }
  const auto kernel = each == kSmallEach ? multiply_tiles<kSmallEach, Native<T>, Native<Out>>
                                         : multiply_tiles<kLargeEach, Native<T>, Native<Out>>;
  hstu::cuda::launch("gemm", kernel, jobs.blocks, 256, stream.handle, jobs);
  for (Divided& d : divided) add_depths(d.product, d.parts, std::move(d.memory), stream);
}

}  // namespace

template <typename T, typename Out>
bool multiply(std::span<const Product<T, Out>> products, CudaStream stream) {
  bool activated = true;
  std::vector<Product<T, Out>> plain;
  const auto launch = [&] {
    if (!plain.empty()) multiply_plain(std::span<const Product<T, Out>>(plain), stream);
    plain.clear();
  };
  for (const Product<T, Out>& p : products) {
    const Gemm<T, Out>& g = p.gemm;
    if (g.m == 0 || g.n == 0) {
      activated = activated && (p.activated == nullptr || g.m == 0);
      continue;
    }
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (fits_tensor_cores(g)) {
        if (!p.row_stable && multiply_sm90(p, stream)) continue;
        multiply_mma(p, stream);
        activated = activated && p.activated == nullptr;
        continue;
      }
    }
    activated = activated && p.activated == nullptr;
    plain.push_back(p);
    if (plain.size() == kMostJobs) launch();
  }
  launch();
  return activated;
}

template bool multiply(std::span<const Product<float>>, CudaStream);
template bool multiply(std::span<const Product<BFloat16>>, CudaStream);
template bool multiply(std::span<const Product<BFloat16, float>>, CudaStream);

}  // namespace hstu::kernels::cuda
