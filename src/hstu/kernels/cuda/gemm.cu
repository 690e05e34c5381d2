// Products on CUDA cores: fp32 arithmetic in every type. A block computes a tile of C; a product of few tiles
// and a long k is cut along k, and the parts are added in ascending order, so that results do not depend on
// when blocks run.
#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/cuda/gemm_mma.cuh"
#include "hstu/kernels/cuda/gemm_sm90.cuh"
#include "hstu/kernels/cuda/gemm_tile.cuh"

namespace hstu::kernels::cuda {
namespace {

inline constexpr int kTile = 64, kDepth = 16;  // of C; of k at a time
inline constexpr int kEach = 4;                // rows and columns of a thread: 16 x 16 threads
inline constexpr std::int64_t kWantedBlocks = 256, kShortest = 256;  // blocks; k of a part

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
    multiply_tiles<<<grid, 256, 0, stream.handle>>>(extents, view_of(g.a), view_of(g.b), epilogue_of(p),
                                                    sums);
  });
  return activated;
}

template bool multiply(const Product<float>&, CudaStream);
template bool multiply(const Product<BFloat16>&, CudaStream);
template bool multiply(const Product<BFloat16, float>&, CudaStream);

}  // namespace hstu::kernels::cuda
