// Sums of the columns of a matrix, in a fixed order: gradients of biases.
#pragma once

#include "hstu/kernels/cuda/part_sums.cuh"
#include "hstu/kernels/cuda/rows.cuh"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels::cuda {

// partial (strips, width): the sums over each strip of rows, which are `stride` apart; a thread has eight
// columns, and loads several rows before it uses the first.
template <bool kWhole, typename N>
__global__ void sum_strips(std::int64_t rows, std::int64_t width, std::int64_t strip, const N* x,
                           std::int64_t stride, float* partial) {
  hstu::cuda::wait_for_previous_launch();
  constexpr int kAtOnce = 8;
  const std::int64_t c = kGroup * (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (c >= width) return;
  const std::int64_t begin = blockIdx.y * strip, end = min(rows, begin + strip);
  float sum[kGroup] = {};
  const auto add = [&](const Packed<N>& group) {
    float v[kGroup];
    group.unpack(v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum[i] += v[i];
  };
  std::int64_t r = begin;
  for (; r + kAtOnce <= end; r += kAtOnce) {
    Packed<N> group[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) group[k] = load_packed<kWhole>(x + (r + k) * stride, c, width);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) add(group[k]);
  }
  for (; r < end; ++r) add(load_packed<kWhole>(x + r * stride, c, width));
  put_group(Target<float>{partial}, blockIdx.y * width, c, width, sum);
}

// The sums of the columns of x (rows, width), whose rows are `stride` apart.
template <typename N>
void sum_columns(std::int64_t rows, std::int64_t width, const N* x, std::int64_t stride, Target<float> total,
                 CudaStream stream) {
  if (width == 0) return;
  constexpr int kColumnThreads = 64;
  const std::int64_t strip = rows_of_strip(rows), strips = count_of_strips(rows);
  Scratch<float> partial(stream, strips * width);
  if (strips > 0) {
    const dim3 grid(blocks_for(width, kColumnThreads * kGroup), static_cast<unsigned>(strips));
    const auto kernel = is_whole(x, stride, width) ? sum_strips<true, N> : sum_strips<false, N>;
    hstu::cuda::launch("sums of columns", kernel, grid, kColumnThreads, stream.handle, rows, width, strip, x,
                       stride, partial.data());
  }
  const PartSum sum = sum_of(partial.data(), strips, width, width, total);
  add_parts({&sum, 1}, std::move(partial), stream);
}

}  // namespace hstu::kernels::cuda
