// Sums of the columns of a matrix, in a fixed order: gradients of biases.
#pragma once

#include "hstu/kernels/cuda/add_partials.cuh"
#include "hstu/kernels/cuda/rows.cuh"

namespace hstu::kernels::cuda {

// Eight columns of a row from c on. kWhole: every group of a row is whole and at a multiple of 16 bytes, so
// that nothing keeps the compiler from having several loads under way.
template <bool kWhole, typename N>
__device__ Packed<N> load_columns(const N* row, std::int64_t c, std::int64_t width) {
  if constexpr (!kWhole) return load_packed(row, c, width);
  Packed<N> packed;
#pragma unroll
  for (int i = 0; i < Packed<N>::kWords; ++i) packed.words[i] = reinterpret_cast<const uint4*>(row + c)[i];
  return packed;
}
template <typename N>
bool is_whole(const N* x, std::int64_t stride, std::int64_t width) {
  return reinterpret_cast<std::uintptr_t>(x) % 16 == 0 && stride % kGroup == 0 && width % kGroup == 0;
}

// The elements of a matrix, whose rows are `stride` apart, as they are.
template <typename N>
struct Plain {
  const N* x;
  std::int64_t stride;
  using Loaded = Packed<N>;
  bool whole(std::int64_t width) const { return is_whole(x, stride, width); }
  template <bool kWhole>
  __device__ Loaded load(std::int64_t r, std::int64_t c, std::int64_t width) const {
    return load_columns<kWhole>(x + r * stride, c, width);
  }
  __device__ void finish(std::int64_t, std::int64_t, std::int64_t, const Loaded& e,
                         float (&v)[kGroup]) const {
    e.unpack(v);
  }
};
// dy, times silu'(y) from column `from` on, which also replaces dy.
template <typename N>
struct ThroughSilu {
  N* dy;
  const N* y;
  std::int64_t stride, from;
  struct Loaded {
    Packed<N> dy, y;
  };
  bool whole(std::int64_t width) const { return is_whole(dy, stride, width) && is_whole(y, stride, width); }
  template <bool kWhole>
  __device__ Loaded load(std::int64_t r, std::int64_t c, std::int64_t width) const {
    Loaded e;
    e.dy = load_columns<kWhole>(dy + r * stride, c, width);
    if (c + kGroup > from) e.y = load_columns<kWhole>(y + r * stride, c, width);
    return e;
  }
  __device__ void finish(std::int64_t r, std::int64_t c, std::int64_t width, const Loaded& e,
                         float (&v)[kGroup]) const {
    e.dy.unpack(v);
    if (c + kGroup <= from) return;
    float before[kGroup];
    e.y.unpack(before);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[i] *= c + i < from ? 1.0f : silu_derivative_for<N>(before[i]);
    put_group(Target<N>{dy}, r * stride, c, width, v);
  }
};

// partial (strips, width) or null: the sums over each strip of rows; a thread has eight columns, and loads
// several rows before it uses the first.
template <bool kWhole, typename Elements>
__global__ void sum_strips(std::int64_t rows, std::int64_t width, std::int64_t strip, Elements elements,
                           float* partial) {
  constexpr int kAtOnce = 4;
  const std::int64_t c = kGroup * (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
  if (c >= width) return;
  const std::int64_t begin = blockIdx.y * strip, end = min(rows, begin + strip);
  float sum[kGroup] = {};
  const auto add = [&](std::int64_t r, const typename Elements::Loaded& e) {
    float v[kGroup];
    elements.finish(r, c, width, e, v);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) sum[i] += v[i];
  };
  std::int64_t r = begin;
  for (; r + kAtOnce <= end; r += kAtOnce) {
    typename Elements::Loaded e[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) e[k] = elements.template load<kWhole>(r + k, c, width);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) add(r + k, e[k]);
  }
  for (; r < end; ++r) add(r, elements.template load<kWhole>(r, c, width));
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
    const auto kernel = elements.whole(width) ? sum_strips<true, Elements> : sum_strips<false, Elements>;
    kernel<<<grid, kColumnThreads, 0, stream.handle>>>(rows, width, strip, elements,
                                                       wanted ? partial.data() : nullptr);
  }
  add_partials(strips, width, partial.data(), width, total, stream);
}

}  // namespace hstu::kernels::cuda
