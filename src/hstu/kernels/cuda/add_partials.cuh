// Adds the partial sums of several blocks in a fixed order.
#pragma once

#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

// A block has 32 columns; its eight warps add every eighth part each, then the first adds the warps' sums.
static __global__ void __launch_bounds__(kThreads)
    add_parts(std::int64_t count, std::int64_t width, const float* parts, std::int64_t stride,
              Target<float> total) {
  __shared__ float sums[kWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  float sum = 0;
#pragma unroll 8
  for (std::int64_t part = warp; part < count; part += kWarps)
    sum += c < width ? parts[part * stride + c] : 0;
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || c >= width) return;
  for (int w = 1; w < kWarps; ++w) sum += sums[w][lane];
  total.put(c, sum);
}

// total (width) = or += the sum of `count` rows of `parts`, which are `stride` apart. Nothing without a
// target.
inline void add_partials(std::int64_t count, std::int64_t width, const float* parts, std::int64_t stride,
                         Target<float> total, CudaStream stream) {
  if (total.to == nullptr || width == 0) return;
  add_parts<<<blocks_for(width, 32), kThreads, 0, stream.handle>>>(count, width, parts, stride, total);
}

}  // namespace hstu::kernels::cuda
