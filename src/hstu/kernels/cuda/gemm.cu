// Products on CUDA cores: fp32 arithmetic in every type. A block computes a tile of C; a product of few tiles
// and a long k is cut along k, and the parts are added in ascending order, so that results do not depend on
// when blocks run.
#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/cuda/gemm_mma.cuh"
#include "hstu/kernels/cuda/gemm_sm90.cuh"
#include "hstu/kernels/cuda/gemm_tile.cuh"

namespace hstu::kernels::cuda {
namespace {

inline constexpr int kTile = 64, kDepth = 32;  // of C; of k at a time
inline constexpr int kEach = 4;                // rows and columns of a thread: 16 x 16 threads
inline constexpr std::int64_t kWantedBlocks = 256, kShortest = 64;  // blocks; k of a part

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
template <typename N>
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

// parts (gridDim.z, m, n): sums of each part of k; null: there is one part, which goes through the epilogue.
// With kSums the sums of the columns of B are one row more.
template <bool kSums, typename N, typename Out>
__global__ void __launch_bounds__(256)
    multiply_tiles(Extents e, View<N> a, View<N> b, Epilogue<Out> epilogue, float* parts) {
  __shared__ float tile_a[kDepth][kTile + 4], tile_b[kDepth][kTile + 4];
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x) * kTile,
                     column0 = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t k_begin = blockIdx.z * e.depth, k_end = min(e.k, k_begin + e.depth);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  Share<N> share_a(a, a.column_stride == 1, row0, e.m), share_b(b, b.column_stride != 1, column0, e.n);
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
    return parts[(blockIdx.z * rows + row) * e.n + column];
  };
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t row = row0 + ty * kEach + i, column = column0 + tx * kEach + j;
      if (row >= e.m || column >= e.n) continue;
      if (parts != nullptr)
        part(row, column) = sum[i][j];
      else
        epilogue.put(row, column, sum[i][j]);
    }
  }
  if constexpr (kSums) {
    if (blockIdx.x > 0 || ty > 0) return;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t column = column0 + tx * kEach + j;
      if (column >= e.n) continue;
      if (parts != nullptr)
        part(e.m, column) = column_sum[j];
      else
        epilogue.column_sums.put(column, column_sum[j]);
    }
  }
}

}  // namespace

template <typename T, typename Out>
bool multiply(const Product<T, Out>& p, CudaStream stream) {
  const Gemm<T, Out>& g = p.gemm;
  const bool activated = p.activated == nullptr || g.m == 0;
  if (g.m == 0 || g.n == 0) return activated;
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (fits_tensor_cores(g)) {
      if (multiply_sm90(p, stream)) return true;
      multiply_mma(p, stream);
      return activated;
    }
  }
  const std::int64_t tiles = ((g.m + kTile - 1) / kTile) * ((g.n + kTile - 1) / kTile);
  const Parts parts = parts_of(g.k, tiles, kWantedBlocks, kShortest, kDepth);
  run_grid(p, kTile, kTile, parts, stream, [&](dim3 grid, const Extents& extents, float* sums) {
    using N = Native<T>;
    const auto kernel = p.column_sums.to != nullptr ? multiply_tiles<true, N, Native<Out>>
                                                    : multiply_tiles<false, N, Native<Out>>;
    kernel<<<grid, 256, 0, stream.handle>>>(extents, view_of(g.a), view_of(g.b), epilogue_of(p), sums);
  });
  return activated;
}

template bool multiply(const Product<float>&, CudaStream);
template bool multiply(const Product<BFloat16>&, CudaStream);
template bool multiply(const Product<BFloat16, float>&, CudaStream);

}  // namespace hstu::kernels::cuda
