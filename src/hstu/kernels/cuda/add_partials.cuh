// Adds the partial sums of several blocks in a fixed order.
#pragma once

#include "hstu/device/cuda/launch.cuh"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/cuda/launch.cuh"
#include "hstu/kernels/cuda/numbers.cuh"

namespace hstu::kernels::cuda {

inline constexpr int kAddWarps = 32;  // few parts for each, because nothing else hides the time of reading

// A block has 32 columns; its warps add every 32nd part each, then the first adds the warps' sums. Columns
// from `width` on belong to `second`.
static __global__ void __launch_bounds__(32 * kAddWarps)
    add_parts(std::int64_t count, std::int64_t columns, const float* parts, std::int64_t width,
              Target<float> first, Target<float> second) {
  __shared__ float sums[kAddWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::int64_t c = static_cast<std::int64_t>(blockIdx.x) * 32 + lane;
  float sum = 0;
  hstu::cuda::wait_for_previous_launch();
#pragma unroll 8
  for (std::int64_t part = warp; part < count; part += kAddWarps)
    sum += c < columns ? parts[part * columns + c] : 0;
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || c >= columns) return;
  for (int w = 1; w < kAddWarps; ++w) sum += sums[w][lane];
  const Target<float>& total = c < width ? first : second;
  if (total.to != nullptr) total.put(c < width ? c : c - width, sum);
}

// first, second (width) = or += the sums of `count` rows of `parts` (count, 2 width). Nothing without a
// target.
inline void add_partials(std::int64_t count, std::int64_t width, const float* parts, Target<float> first,
                         Target<float> second, CudaStream stream) {
  if (width == 0) return;
  hstu::cuda::launch("sums of parts", add_parts, blocks_for(2 * width, 32), 32 * kAddWarps, stream.handle,
                     count, 2 * width, parts, width, first, second);
}
// total (width) = or += the sums of `parts` (count, width).
inline void add_partials(std::int64_t count, std::int64_t width, const float* parts, Target<float> total,
                         CudaStream stream) {
  if (width == 0) return;
  hstu::cuda::launch("sums of parts", add_parts, blocks_for(width, 32), 32 * kAddWarps, stream.handle, count,
                     width, parts, width, total, Target<float>{});
}

}  // namespace hstu::kernels::cuda
