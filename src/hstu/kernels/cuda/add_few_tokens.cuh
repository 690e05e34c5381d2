// The sums of token gradients by row in one launch, for few tokens: sorting them takes longer.
#pragma once

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

// A block has 128 columns of one row, or of four where most rows have few tokens. Each of its warps looks for
// the rows' tokens in a part of all tokens and adds up what it finds in ascending order; then the warps' sums
// are added in their order.
inline constexpr int kTokenWarps = 16, kTokenColumns = 128, kMostRows = 4;
__host__ __device__ inline int rows_of_block(std::int64_t tokens, std::int64_t rows) {
  return tokens < 8 * rows ? kMostRows : 1;
}

// One sum of a launch.
template <typename N, typename Out>
struct FewTokens {
  const N* dy = nullptr;  // (tokens, width), rows `stride` apart
  const std::int32_t* index = nullptr;
  std::int64_t tokens = 0, width = 0, stride = 0;
  float factor = 1;
  Target<Out> rows;
  std::int64_t count = 0;  // of rows
  unsigned first = 0;      // block
};
inline constexpr int kMostSums = 8;
template <typename N, typename Out>
struct ManyFewTokens {
  FewTokens<N, Out> each[kMostSums];
  int count = 0;
  unsigned blocks = 0;
};

template <int kRows, typename N, typename Out>
__device__ void add_few_tokens(const FewTokens<N, Out>& of,
                               float (&sums)[kTokenWarps][kMostRows][kTokenColumns]) {
  const std::int64_t row0 = static_cast<std::int64_t>(blockIdx.x - of.first) * kRows;
  constexpr int kAtOnce = 8, kEach = kTokenColumns / 32;  // loads under way; columns of a lane
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t c0 = std::int64_t{kTokenColumns} * blockIdx.y, tokens = of.tokens, width = of.width;
  if (c0 >= width) return;
  const std::int64_t share = (tokens + kTokenWarps - 1) / kTokenWarps, begin = warp * share,
                     end = min(tokens, begin + share);
  float sum[kRows][kEach] = {};
  for (std::int64_t t0 = begin; t0 < end; t0 += 32) {
    const std::int32_t row = t0 + lane < end ? of.index[t0 + lane] : -1;
    if (row >= of.count) __trap();                  // the host's kernel throws
    const auto own = static_cast<int>(row - row0);  // rows of this block: 0 to kRows - 1
    unsigned left = __ballot_sync(0xffffffffu, row >= row0 && own < kRows);
    while (left != 0) {
      float v[kAtOnce][kEach];
      int own_of[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k, left &= left - 1) {
        const int from = left != 0 ? __ffs(left) - 1 : 0;
        own_of[k] = left != 0 ? __shfl_sync(0xffffffffu, own, from) : -1;
        const N* const gradient = of.dy + (t0 + from) * of.stride;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          const std::int64_t c = c0 + lane + 32 * i;
          v[k][i] = left != 0 && c < width ? to_float(gradient[c]) : 0.0f;
        }
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
#pragma unroll
          for (int i = 0; i < kEach; ++i)
            sum[r][i] = own_of[k] == r ? fmaf(of.factor, v[k][i], sum[r][i]) : sum[r][i];
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) sums[warp][r][lane + 32 * i] = sum[r][i];
  }
  __syncthreads();
  static_assert(kMostRows * kTokenColumns == 32 * kTokenWarps);
  const int r = threadIdx.x / kTokenColumns, column = threadIdx.x % kTokenColumns;
  if (r >= kRows || row0 + r >= of.count || c0 + column >= width) return;
  float total = sums[0][r][column];
  for (int w = 1; w < kTokenWarps; ++w) total += sums[w][r][column];
  of.rows.put((row0 + r) * width + c0 + column, total);
}

template <typename N, typename Out>
__global__ void __launch_bounds__(32 * kTokenWarps)
    add_few_tokens(const __grid_constant__ ManyFewTokens<N, Out> sums_by_row) {
  hstu::cuda::wait_for_previous_launch();
  __shared__ float sums[kTokenWarps][kMostRows][kTokenColumns];
  const FewTokens<N, Out>& of = of_block(sums_by_row);
  if (rows_of_block(of.tokens, of.count) == 1)
    add_few_tokens<1>(of, sums);
  else
    add_few_tokens<kMostRows>(of, sums);
}

// Where every block may look at every token.
inline bool are_few_tokens(std::int64_t tokens, std::int64_t rows) {
  constexpr std::int64_t kMost = 8192;
  return tokens <= kMost && tokens * rows <= (std::int64_t{1} << 24);
}

}  // namespace hstu::kernels::cuda
