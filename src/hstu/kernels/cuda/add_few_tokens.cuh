// The sums of token gradients by row in one launch, for few tokens: sorting them takes longer.
#pragma once

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

// A block has 128 columns of four rows. Each of its warps looks for the rows' tokens in a part of all tokens
// and adds up what it finds in ascending order; then the warps' sums are added in their order.
inline constexpr int kTokenWarps = 16, kTokenColumns = 128, kTokenRows = 4;

// One sum of a launch.
template <typename Out>
struct FewTokens {
  const std::int32_t* index = nullptr;
  float factor = 1;
  Target<Out> rows;
  std::int64_t count = 0;  // of rows
  unsigned first = 0;      // block
};
inline constexpr int kMostSums = 8;
template <typename Out>
struct ManyFewTokens {
  FewTokens<Out> each[kMostSums];
  int count = 0;
  unsigned blocks = 0;
};

template <typename N, typename Out>
__global__ void __launch_bounds__(32 * kTokenWarps)
    add_few_tokens(std::int64_t tokens, std::int64_t width, const N* dy,
                   const __grid_constant__ ManyFewTokens<Out> sums_by_row) {
  int at = 0;
  while (at + 1 < sums_by_row.count && sums_by_row.each[at + 1].first <= blockIdx.x) ++at;
  const auto& [index, factor, rows, count, first] = sums_by_row.each[at];
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x - first) * kTokenRows;
  constexpr int kAtOnce = 8, kEach = kTokenColumns / 32;  // loads under way; columns of a lane
  __shared__ float sums[kTokenWarps][kTokenRows][kTokenColumns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t c0 = std::int64_t{kTokenColumns} * blockIdx.y;
  const std::int64_t share = (tokens + kTokenWarps - 1) / kTokenWarps, begin = warp * share,
                     end = min(tokens, begin + share);
  float sum[kTokenRows][kEach] = {};
  for (std::int64_t t0 = begin; t0 < end; t0 += 32) {
    const std::int32_t row = t0 + lane < end ? index[t0 + lane] : -1;
    if (row >= count) __trap();                     // the host's kernel throws
    const auto own = static_cast<int>(row - row0);  // rows of this block: 0 to 3
    unsigned left = __ballot_sync(0xffffffffu, row >= row0 && own < kTokenRows);
    while (left != 0) {
      float v[kAtOnce][kEach];
      int of[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k, left &= left - 1) {
        const int from = left != 0 ? __ffs(left) - 1 : 0;
        of[k] = left != 0 ? __shfl_sync(0xffffffffu, own, from) : -1;
        const N* const gradient = dy + (t0 + from) * width;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          const std::int64_t c = c0 + lane + 32 * i;
          v[k][i] = left != 0 && c < width ? to_float(gradient[c]) : 0.0f;
        }
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
#pragma unroll
        for (int r = 0; r < kTokenRows; ++r) {
#pragma unroll
          for (int i = 0; i < kEach; ++i)
            sum[r][i] = of[k] == r ? fmaf(factor, v[k][i], sum[r][i]) : sum[r][i];
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kTokenRows; ++r) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) sums[warp][r][lane + 32 * i] = sum[r][i];
  }
  __syncthreads();
  static_assert(kTokenRows * kTokenColumns == 32 * kTokenWarps);
  const int r = threadIdx.x / kTokenColumns, column = threadIdx.x % kTokenColumns;
  if (row0 + r >= count || c0 + column >= width) return;
  float total = sums[0][r][column];
  for (int w = 1; w < kTokenWarps; ++w) total += sums[w][r][column];
  rows.put((row0 + r) * width + c0 + column, total);
}

// Where every block may look at every token.
inline bool are_few_tokens(std::int64_t tokens, std::int64_t rows) {
  constexpr std::int64_t kMost = 8192;
  return tokens <= kMost && tokens * rows <= (std::int64_t{1} << 24);
}

}  // namespace hstu::kernels::cuda
