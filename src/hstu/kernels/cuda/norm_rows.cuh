// Rows of a normalisation, one warp a row, in registers: lane l has elements [256 g + 8 l, 256 g + 8 l + 8)
// for each group g. Sums over rows for each column stay in registers too, and are added in a fixed order.
#pragma once

#include "hstu/kernels/cuda/add_partials.cuh"
#include "hstu/kernels/cuda/dropout.cuh"
#include "hstu/kernels/cuda/rows.cuh"

namespace hstu::kernels::cuda {

template <int kGroups>
using Row = float[kGroups][kGroup];

inline constexpr std::int64_t kGroupColumns = 32 * kGroup, kWidestRow = 8 * kGroupColumns;

// The first column of this lane in group g.
__device__ inline std::int64_t column_of(int g) {
  return g * kGroupColumns + kGroup * lane();
}

// Zero beyond the width.
template <int kGroups, typename N>
__device__ void load_row(const N* row, std::int64_t width, Row<kGroups>& x) {
#pragma unroll
  for (int g = 0; g < kGroups; ++g) load_group(row, column_of(g), width, x[g]);
}

// A bit for each element of a row: bit 8 g + i is element (g, i).
using RowBits = std::uint64_t;

// Which of columns [first, first + width) dropout keeps. A loop, because a draw is long.
template <int kGroups>
__device__ RowBits kept_in_row(const DropoutRows& dropout, std::uint64_t row_key, std::int64_t first,
                               std::int64_t width) {
  RowBits bits = 0;
#pragma unroll 1
  for (int g = 0; g < kGroups && column_of(g) < width; ++g)
    bits |= static_cast<RowBits>(dropout.kept(row_key, first + column_of(g))) << (kGroup * g);
  return bits;
}
__device__ inline bool bit(RowBits bits, int g, int i) {
  return bits >> (kGroup * g + i) & 1;
}

struct RowStatistics {
  float mean, rstd;
};

// Of a row, in two passes; every lane of the warp gets them.
template <int kGroups>
__device__ RowStatistics row_statistics(const Row<kGroups>& x, std::int64_t width, float epsilon) {
  float sum = 0, squares = 0;
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum += x[g][i];
  }
  const float mean = warp_sum(sum) / static_cast<float>(width);
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float d = column_of(g) + i < width ? x[g][i] - mean : 0.0f;
      squares += d * d;
    }
  }
  return {mean, rsqrtf(warp_sum(squares) / static_cast<float>(width) + epsilon)};
}

// Calls launch.operator()<kGroups>() with groups that hold a row of N: few where they are few, so that more
// warps share a multiprocessor.
template <typename N, typename Launch>
void with_groups(std::int64_t width, const Launch& launch) {
  require(width <= kWidestRow, "a norm of {} elements is too wide for a GPU: at most {}", width, kWidestRow);
  if (width <= 2 * kGroupColumns) return launch.template operator()<2>();
  if constexpr (sizeof(N) == 2) {
    if (width <= 4 * kGroupColumns) return launch.template operator()<4>();
  }
  launch.template operator()<8>();
}

template <int kGroups, typename Body>
__global__ void __launch_bounds__(kThreads, kGroups <= 4 ? 2 : 1)
    each_norm_row(std::int64_t rows, Body body) {
  const std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (r < rows) body.template operator()<kGroups>(r);
}

// body.operator()<kGroups>(row) with each warp on a row of its own.
template <typename N, typename Body>
void for_each_norm_row(std::int64_t rows, std::int64_t width, const Body& body, CudaStream stream) {
  if (rows == 0) return;
  with_groups<N>(width, [&]<int kGroups>() {
    each_norm_row<kGroups><<<blocks_for(rows, kWarps), kThreads, 0, stream.handle>>>(rows, body);
  });
}

inline constexpr std::int64_t kSumBlocks = 264;  // a constant, so that the sums are the same on every GPU

// partial (blocks, 2, width): the sums of this block's rows, which the body adds to first and second.
template <int kGroups, typename Body>
__global__ void __launch_bounds__(kThreads)
    each_norm_row_with_sums(std::int64_t rows, std::int64_t width, Body body, float* partial) {
  Row<kGroups> first = {}, second = {};
  const int warp = threadIdx.x / 32;
  for (std::int64_t r = static_cast<std::int64_t>(blockIdx.x) * kWarps + warp; r < rows;
       r += static_cast<std::int64_t>(gridDim.x) * kWarps)
    body.template operator()<kGroups>(r, first, second);
  if (partial == nullptr) return;
  __shared__ float sums[2][kGroups][kGroup][32];
  for (int w = 0; w < kWarps; ++w) {  // warp after warp
    if (warp == w) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
#pragma unroll
        for (int i = 0; i < kGroup; ++i) {
          float& a = sums[0][g][i][lane()];
          float& b = sums[1][g][i][lane()];
          a = w == 0 ? first[g][i] : a + first[g][i];
          b = w == 0 ? second[g][i] : b + second[g][i];
        }
      }
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < 2 * width; i += kThreads) {
    const int c = i < width ? i : i - static_cast<int>(width);
    partial[blockIdx.x * 2 * width + i] =
        sums[i < width ? 0 : 1][c / kGroupColumns][c % kGroup][c % kGroupColumns / kGroup];
  }
}

// body.operator()<kGroups>(row, first, second) likewise; it adds to the sums of its columns.
template <typename N, typename Body>
void for_each_norm_row_with_sums(std::int64_t rows, std::int64_t width, const Body& body, Target<float> first,
                                 Target<float> second, CudaStream stream) {
  const bool wanted = first.to != nullptr || second.to != nullptr;
  const std::int64_t blocks = std::min(kSumBlocks, (rows + kWarps - 1) / kWarps);
  const Scratch<float> partial(stream, wanted ? 2 * blocks * width : 0);
  if (blocks > 0) {
    with_groups<N>(width, [&]<int kGroups>() {
      each_norm_row_with_sums<kGroups><<<static_cast<unsigned>(blocks), kThreads, 0, stream.handle>>>(
          rows, width, body, wanted ? partial.data() : nullptr);
    });
  }
  if (!wanted) return;
  add_partials(blocks, width, partial.data(), 2 * width, first, stream);
  add_partials(blocks, width, partial.data() + width, 2 * width, second, stream);
}

}  // namespace hstu::kernels::cuda
