// The sums of token gradients by row in one launch, for few tokens: sorting them takes longer.
#pragma once

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

// A block has 128 columns of one row. Each of its warps looks for the row's tokens in a part of all tokens
// and adds up what it finds in ascending order; then the warps' sums are added in their order.
inline constexpr int kTokenWarps = 16, kTokenColumns = 128;

template <typename N, typename Out>
__global__ void __launch_bounds__(32 * kTokenWarps)
    add_few_tokens(std::int64_t tokens, std::int64_t width, const std::int32_t* index, const N* dy,
                   float factor, Target<Out> rows) {
  constexpr int kAtOnce = 8, kEach = kTokenColumns / 32;  // loads under way; columns of a lane
  __shared__ float sums[kTokenWarps][kTokenColumns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t c0 = std::int64_t{kTokenColumns} * blockIdx.y;
  const std::int64_t share = (tokens + kTokenWarps - 1) / kTokenWarps, begin = warp * share,
                     end = min(tokens, begin + share);
  float sum[kEach] = {};
  for (std::int64_t t0 = begin; t0 < end; t0 += 32) {
    const std::int32_t row = t0 + lane < end ? index[t0 + lane] : -1;
    if (row >= static_cast<std::int64_t>(gridDim.x)) __trap();  // the host's kernel throws
    unsigned left = __ballot_sync(0xffffffffu, row == static_cast<std::int64_t>(blockIdx.x));
    while (left != 0) {
      float v[kAtOnce][kEach];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k, left &= left - 1) {
        const N* const gradient = dy + (t0 + __ffs(left) - 1) * width;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
          const std::int64_t c = c0 + lane + 32 * i;
          v[k][i] = left != 0 && c < width ? to_float(gradient[c]) : 0.0f;
        }
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
#pragma unroll
        for (int i = 0; i < kEach; ++i) sum[i] = fmaf(factor, v[k][i], sum[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) sums[warp][lane + 32 * i] = sum[i];
  __syncthreads();
  const std::int64_t c = c0 + threadIdx.x;
  if (threadIdx.x >= kTokenColumns || c >= width) return;
  float total = sums[0][threadIdx.x];
  for (int w = 1; w < kTokenWarps; ++w) total += sums[w][threadIdx.x];
  rows.put(blockIdx.x * width + c, total);
}

// Where every block may look at every token.
inline bool are_few_tokens(std::int64_t tokens, std::int64_t rows) {
  constexpr std::int64_t kMost = 8192;
  return tokens <= kMost && tokens * rows <= (std::int64_t{1} << 24);
}

}  // namespace hstu::kernels::cuda
