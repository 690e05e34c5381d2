// mma.sync (m16n8k16) on tiles of 128 x 128, copied asynchronously in three stages of 32 deep. Each factor
// may be stored either way; ldmatrix turns the tile round where that is needed.
#include "hstu/device/cuda/mma.cuh"
#include "hstu/kernels/cuda/column_sums.cuh"
#include "hstu/kernels/cuda/gemm_mma.cuh"
#include "hstu/kernels/cuda/gemm_tile.cuh"

namespace hstu::kernels::cuda {
namespace {

using namespace hstu::cuda;
using Element = __nv_bfloat16;

inline constexpr int kTile = 128, kDepth = 32, kStages = 3, kChunk = 8;  // a chunk: 16 bytes
inline constexpr int kTileElements = kTile * kDepth;
inline constexpr int kWarpRows = 64, kWarpColumns = 32;  // 2 x 4 warps
static_assert(kMmaTiles.rows == kTile && kMmaTiles.columns == kTile && kMmaTiles.step == kDepth);

__device__ std::uint32_t address(const Element* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

// A factor as it is stored. `by_depth`: its rows run along k, so that row r of the tile is a row of memory;
// otherwise a row of memory is one k, and the tile's rows run along it.
struct Stored {
  const Element* data;
  std::int64_t stride, rows;
};

// The tile of rows [row0, row0 + 128) and k [k0, k0 + 32), zero beyond the ends. Chunks are permuted within
// rows, so that the eight rows that ldmatrix reads at a time are in different banks.
template <bool by_depth>
__device__ Element* place(Element* tile, int row, int k) {  // k or row is a multiple of a chunk
  if constexpr (by_depth)
    return tile + row * kDepth + (((k / kChunk) ^ ((row >> 1) & 3)) * kChunk);
  else
    return tile + k * kTile + (((row / kChunk) ^ (k & 7)) * kChunk);
}

// The chunks that one thread copies of each tile of a factor, tile after tile along k.
template <bool by_depth>
class TileCopy {
 public:
  __device__ TileCopy(const Stored& f, std::int64_t row0, std::int64_t k_begin)
      : step_(by_depth ? kDepth : kDepth * f.stride) {
    constexpr int kAcross = (by_depth ? kDepth : kTile) / kChunk;
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int i = static_cast<int>(threadIdx.x) + n * kThreads;
      const int row = by_depth ? i / kAcross : i % kAcross * kChunk;
      k_[n] = by_depth ? i % kAcross * kChunk : i / kAcross;
      const std::int64_t left = f.rows - (row0 + row);
      rows_[n] = static_cast<int>(max(std::int64_t{0}, min(left, std::int64_t{kChunk})));
      const std::int64_t k = k_begin + k_[n];
      from_[n] = f.data + (by_depth ? (row0 + row) * f.stride + k : k * f.stride + row0 + row);
      to_[n] = static_cast<int>(place<by_depth>(nullptr, row, k_[n]) - static_cast<Element*>(nullptr));
    }
  }
  // The next tile, of which `depth` are within the factor.
  __device__ void next(Element* tile, int depth) {
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int elements =
          by_depth ? (rows_[n] > 0 ? max(0, min(depth - k_[n], kChunk)) : 0) : (k_[n] < depth ? rows_[n] : 0);
      copy_or_zero(address(tile + to_[n]), from_[n], 2 * elements);
      from_[n] += step_;
    }
  }

 private:
  static constexpr int kEach = kTileElements / kChunk / kThreads;
  std::int64_t step_;
  const Element* from_[kEach];
  int to_[kEach], k_[kEach], rows_[kEach];
};

// Operands of one mma: 16 rows of A, 16 columns of B, each 16 deep from k on.
template <bool by_depth>
__device__ void load_a(std::uint32_t (&r)[4], Element* tile, int row, int k) {
  const int lane = threadIdx.x % 32;
  if constexpr (by_depth)
    load_matrices(r, address(place<true>(tile, row + lane % 16, k + lane / 16 * 8)));
  else
    load_transposed(r, address(place<false>(tile, row + lane / 8 % 2 * 8, k + lane % 8 + lane / 16 * 8)));
}
template <bool by_depth>
__device__ void load_b(std::uint32_t (&r)[4], Element* tile, int column, int k) {
  const int lane = threadIdx.x % 32;
  if constexpr (by_depth)
    load_matrices(r, address(place<true>(tile, column + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * 8)));
  else
    load_transposed(r, address(place<false>(tile, column + lane / 16 * 8, k + lane % 8 + lane / 8 % 2 * 8)));
}

template <bool a_by_depth, bool b_by_depth, typename Out>
__global__ void __launch_bounds__(kThreads)
    mma_tiles(Extents e, Stored a, Stored b, Epilogue<Out> epilogue, float* parts) {
  hstu::cuda::wait_for_previous_launch();
  __shared__ __align__(16) Element tiles_a[kStages][kTileElements], tiles_b[kStages][kTileElements];
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x) * kTile,
                     column0 = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t k_begin = blockIdx.z * e.depth, k_end = min(e.k, k_begin + e.depth);
  const int steps = static_cast<int>((k_end - k_begin + kDepth - 1) / kDepth);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp % 2 * kWarpRows, warp_column = warp / 2 * kWarpColumns;

  TileCopy<a_by_depth> copy_a(a, row0, k_begin);
  TileCopy<b_by_depth> copy_b(b, column0, k_begin);
  const int depth = static_cast<int>(k_end - k_begin);
  const auto copy_stage = [&](int step) {
    if (step < steps) {
      copy_a.next(tiles_a[step % kStages], depth - step * kDepth);
      copy_b.next(tiles_b[step % kStages], depth - step * kDepth);
    }
    commit_copies();
  };
  for (int step = 0; step < kStages - 1; ++step) copy_stage(step);

  float sums[4][4][4] = {};  // 16 rows, 8 columns, as mma leaves them
  for (int step = 0; step < steps; ++step) {
    wait_for_copy_groups<kStages - 2>();
    __syncthreads();
    copy_stage(step + kStages - 1);
    Element* const tile_a = tiles_a[step % kStages];
    Element* const tile_b = tiles_b[step % kStages];
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      std::uint32_t x[4][4], y[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) load_a<a_by_depth>(x[i], tile_a, warp_row + 16 * i, k);
#pragma unroll
      for (int j = 0; j < 2; ++j) load_b<b_by_depth>(y[j], tile_b, warp_column + 16 * j, k);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j)
          multiply_add<Element>(sums[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::int64_t row = row0 + warp_row + 16 * i + lane / 4 + half * 8;
        const std::int64_t column = column0 + warp_column + 8 * j + lane % 4 * 2;
        if (row >= e.m || column >= e.n) continue;
        const float x = sums[i][j][2 * half], y = sums[i][j][2 * half + 1];
        if (parts == nullptr) {
          epilogue.put_pair(row, column, e.n, x, y);
        } else {
          float* const part = parts + (blockIdx.z * e.m + row) * e.n + column;
          part[0] = x;
          if (column + 1 < e.n) part[1] = y;
        }
      }
    }
  }
}

}  // namespace

template <typename Out>
void multiply_mma(const Product<BFloat16, Out>& p, CudaStream stream) {
  const Gemm<BFloat16, Out>& g = p.gemm;
  if (p.column_sums.to != nullptr) {
    sum_columns(g.k, g.n, native(g.b.data), g.b.stride, p.column_sums, stream);
    Product<BFloat16, Out> rest = p;
    rest.column_sums = {};
    return multiply_mma(rest, stream);
  }
  const Parts parts = parts_of(g.m, g.n, g.k, kMmaTiles, p.row_stable);
  const Stored a{native(g.a.data), g.a.stride, g.m}, b{native(g.b.data), g.b.stride, g.n};
  const bool a_by_depth = g.a.op == Op::none, b_by_depth = g.b.op == Op::transpose;
  run_grid(p, kTile, kTile, parts, stream, [&](dim3 grid, const Extents& extents, float* sums) {
    auto* const kernel =
        a_by_depth
            ? (b_by_depth ? mma_tiles<true, true, Native<Out>> : mma_tiles<true, false, Native<Out>>)
            : (b_by_depth ? mma_tiles<false, true, Native<Out>> : mma_tiles<false, false, Native<Out>>);
    hstu::cuda::launch("gemm", kernel, grid, kThreads, stream.handle, extents, a, b, epilogue_of(p), sums);
  });
}

template void multiply_mma(const Product<BFloat16>&, CudaStream);
template void multiply_mma(const Product<BFloat16, float>&, CudaStream);

}  // namespace hstu::kernels::cuda
