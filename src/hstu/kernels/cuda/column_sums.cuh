// Sums of the columns of a matrix, in a fixed order: gradients of biases.
#pragma once

#include "hstu/kernels/cuda/add_partials.cuh"
#include "hstu/kernels/cuda/rows.cuh"

namespace hstu::kernels::cuda {

// The elements of a matrix, whose rows are `stride` apart, as they are.
template <typename N>
struct Plain {
  const N* x;
  std::int64_t stride;
  struct Loaded {
    float v[kGroup];
  };
  __device__ void load(std::int64_t r, std::int64_t c, std::int64_t width, Loaded& e) const {
    load_group(x + r * stride, c, width, e.v);
  }
  __device__ void finish(std::int64_t, std::int64_t, std::int64_t, Loaded&) const {}
};
// dy, times silu'(y) from column `from` on, which also replaces dy.
template <typename N>
struct ThroughSilu {
  N* dy;
  const N* y;
  std::int64_t stride, from;
  struct Loaded {
    float v[kGroup], y[kGroup];
  };
  __device__ void load(std::int64_t r, std::int64_t c, std::int64_t width, Loaded& e) const {
    load_group(dy + r * stride, c, width, e.v);
    if (c + kGroup > from) load_group(y + r * stride, c, width, e.y);
  }
  __device__ void finish(std::int64_t r, std::int64_t c, std::int64_t width, Loaded& e) const {
    if (c + kGroup <= from) return;
#pragma unroll
    for (int i = 0; i < kGroup; ++i) e.v[i] *= c + i < from ? 1.0f : silu_derivative_for<N>(e.y[i]);
    put_group(Target<N>{dy}, r * stride, c, width, e.v);
  }
};

// partial (strips, width) or null: the sums over each strip of rows; a thread has eight columns, and loads
// several rows before it uses the first.
template <typename Elements>
__global__ void sum_strips(std::int64_t rows, std::int64_t width, std::int64_t strip, Elements elements,
                           float* partial) {
  constexpr int kAtOnce = 4;
  const std::int64_t c = kGroup * (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (c >= width) return;
  const std::int64_t begin = blockIdx.y * strip, end = min(rows, begin + strip);
  float sum[kGroup] = {};
  for (std::int64_t r = begin; r < end; r += kAtOnce) {
    typename Elements::Loaded e[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (r + k < end) elements.load(r + k, c, width, e[k]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (r + k >= end) break;
      elements.finish(r + k, c, width, e[k]);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) sum[i] += e[k].v[i];
    }
  }
  if (partial != nullptr) put_group(Target<float>{partial}, blockIdx.y * width, c, width, sum);
}

// The sums of the columns of `elements` (rows, width); without a target the elements are visited alone.
template <typename Elements>
void sum_columns(std::int64_t rows, std::int64_t width, const Elements& elements, Target<float> total,
                 CudaStream stream) {
  if (width == 0) return;
  constexpr std::int64_t kMostStrips = 512;
  constexpr int kColumnThreads = 64;
  const std::int64_t strip = std::max<std::int64_t>(16, (rows + kMostStrips - 1) / kMostStrips);
  const std::int64_t strips = (rows + strip - 1) / strip;
  const bool wanted = total.to != nullptr;
  const Scratch<float> partial(stream, wanted ? strips * width : 0);
  if (strips > 0) {
    const dim3 grid(blocks_for(width, kColumnThreads * kGroup), static_cast<unsigned>(strips));
    sum_strips<<<grid, kColumnThreads, 0, stream.handle>>>(rows, width, strip, elements,
                                                           wanted ? partial.data() : nullptr);
  }
  add_partials(strips, width, partial.data(), width, total, stream);
}

}  // namespace hstu::kernels::cuda
