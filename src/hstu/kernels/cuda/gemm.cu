// Products on CUDA cores: fp32 arithmetic in every type. A block computes a tile of C; a product of few tiles
// and a long k is cut along k, and the parts are added in ascending order, so that results do not depend on
// when blocks run.
#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/cuda/launch.cuh"

namespace hstu::kernels::cuda {
namespace {

inline constexpr int kTile = 64, kDepth = 16;  // of C; of k at a time
inline constexpr int kEach = 4;                // rows and columns of a thread: 16 x 16 threads
inline constexpr std::int64_t kFewTiles = 256, kShortest = 256;

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

template <typename Out>
struct Epilogue {
  Out* c;
  std::int64_t stride;
  float alpha, beta;
  const float* bias;
  const Out* residual;

  __device__ void put(std::int64_t row, std::int64_t column, float sum) const {
    const std::int64_t at = row * stride + column;
    float x = alpha * sum;
    if (beta != 0) x += beta * to_float(c[at]);
    if (bias != nullptr) x += bias[column];
    if (residual != nullptr) x += to_float(residual[at]);
    c[at] = from_float<Out>(x);
  }
};

struct Extents {
  std::int64_t m, n, k;
  std::int64_t depth;  // of a part
};

// parts (gridDim.z, m, n): sums of each part of k; null: there is one part, which goes through the epilogue.
template <typename N, typename Out>
__global__ void __launch_bounds__(256)
    multiply_tiles(Extents e, View<N> a, View<N> b, Epilogue<Out> epilogue, float* parts) {
  __shared__ float tile_a[kDepth][kTile + 4], tile_b[kDepth][kTile + 4];
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x) * kTile,
                     column0 = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t k_begin = blockIdx.z * e.depth, k_end = min(e.k, k_begin + e.depth);
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const bool a_by_row = a.column_stride == 1, b_by_row = b.column_stride == 1;
  float sum[kEach][kEach] = {};
  for (std::int64_t k0 = k_begin; k0 < k_end; k0 += kDepth) {
    // Neighbouring threads read neighbouring addresses, whichever way the factor is stored.
    for (int i = threadIdx.x; i < kTile * kDepth; i += 256) {
      const int ra = a_by_row ? i / kDepth : i % kTile, ka = a_by_row ? i % kDepth : i / kTile;
      tile_a[ka][ra] = row0 + ra < e.m && k0 + ka < k_end ? a(row0 + ra, k0 + ka) : 0.0f;
      const int cb = b_by_row ? i % kTile : i / kDepth, kb = b_by_row ? i / kTile : i % kDepth;
      tile_b[kb][cb] = column0 + cb < e.n && k0 + kb < k_end ? b(k0 + kb, column0 + cb) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      float x[kEach], y[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) x[i] = tile_a[k][ty * kEach + i], y[i] = tile_b[k][tx * kEach + i];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const std::int64_t row = row0 + ty * kEach + i, column = column0 + tx * kEach + j;
      if (row >= e.m || column >= e.n) continue;
      if (parts != nullptr)
        parts[(blockIdx.z * e.m + row) * e.n + column] = sum[i][j];
      else
        epilogue.put(row, column, sum[i][j]);
    }
  }
}

template <typename Out>
__global__ void add_depth(std::int64_t count, Extents e, const float* parts, Epilogue<Out> epilogue) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= e.m * e.n) return;
  float sum = 0;
  for (std::int64_t part = 0; part < count; ++part) sum += parts[part * e.m * e.n + i];
  epilogue.put(i / e.n, i % e.n, sum);
}

}  // namespace

template <typename T, typename Out>
void multiply(const Product<T, Out>& p, CudaStream stream) {
  const Gemm<T, Out>& g = p.gemm;
  if (g.m == 0 || g.n == 0) return;
  const Epilogue<Native<Out>> epilogue{native(g.c), g.stride_c, g.alpha, g.beta, p.bias, native(p.residual)};
  const std::int64_t rows = (g.m + kTile - 1) / kTile, columns = (g.n + kTile - 1) / kTile;
  const std::int64_t wanted = std::max<std::int64_t>(1, kFewTiles / (rows * columns));
  const std::int64_t depth =
      std::max(kShortest, ((g.k + wanted - 1) / wanted + kDepth - 1) / kDepth * kDepth);
  const std::int64_t parts = std::max<std::int64_t>(1, (g.k + depth - 1) / depth);
  const Extents extents{g.m, g.n, g.k, depth};
  const dim3 grid(blocks_for(g.m, kTile), static_cast<unsigned>(columns), static_cast<unsigned>(parts));
  require(columns < 65536, "a product of {} columns is too wide for one kernel", g.n);
  if (parts == 1) {
    multiply_tiles<<<grid, 256, 0, stream.handle>>>(extents, view_of(g.a), view_of(g.b), epilogue, nullptr);
  } else {
    const Scratch<float> sums(stream, parts * g.m * g.n);
    multiply_tiles<<<grid, 256, 0, stream.handle>>>(extents, view_of(g.a), view_of(g.b), epilogue,
                                                    sums.data());
    add_depth<<<blocks_for(g.m * g.n, kThreads), kThreads, 0, stream.handle>>>(parts, extents, sums.data(),
                                                                               epilogue);
  }
  check_launch("gemm");
}

template void multiply(const Product<float>&, CudaStream);
template void multiply(const Product<BFloat16>&, CudaStream);
template void multiply(const Product<BFloat16, float>&, CudaStream);

}  // namespace hstu::kernels::cuda
