#include "hstu/kernels/activation.h"
#include "hstu/kernels/cuda/gelu.cuh"
#include "hstu/kernels/cuda/rows.cuh"

namespace hstu::kernels {
namespace {

using namespace cuda;

constexpr float kInverseSqrt2 = 0.70710678118654752f, kInverseSqrt2Pi = 0.39894228040143268f;

template <Activation activation, typename N>
__device__ float function(float x) {
  if constexpr (activation == Activation::relu) return relu_of(x);
  if constexpr (activation == Activation::gelu) return x * 0.5f * (1 + erff(x * kInverseSqrt2));
  return silu_for<N>(x);
}

template <Activation activation, typename N>
__device__ float derivative(float x) {
  if constexpr (activation == Activation::relu) return relu_slope(x);
  if constexpr (activation == Activation::gelu)
    return 0.5f * (1 + erff(x * kInverseSqrt2)) + x * expf(-x * x / 2) * kInverseSqrt2Pi;
  return silu_derivative_for<N>(x);
}

// gelu in 16 bits has the bits of products that have it.
template <Activation activation, typename N>
constexpr bool kInPairs = activation == Activation::gelu && sizeof(N) == 2;

template <Activation activation, typename N>
__global__ void activate_elements(std::int64_t size, const N* x, Target<N> y) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t c = first_of_thread();
  if (c >= size) return;
  float v[kGroup];
  load_group(x, c, size, v);
#pragma unroll
  for (int i = 0; i < kGroup; i += 2) {
    if constexpr (kInPairs<activation, N>) {
      const float2 y = fast_gelu({v[i], v[i + 1]});
      v[i] = y.x, v[i + 1] = y.y;
    } else {
      v[i] = function<activation, N>(v[i]), v[i + 1] = function<activation, N>(v[i + 1]);
    }
  }
  put_group(y, 0, c, size, v);
}

template <Activation activation, typename N>
__global__ void differentiate_elements(std::int64_t size, const N* x, const N* dy, Target<N> dx) {
  hstu::cuda::wait_for_previous_launch();
  const std::int64_t c = first_of_thread();
  if (c >= size) return;
  float v[kGroup], g[kGroup];
  load_group(x, c, size, v);
  load_group(dy, c, size, g);
#pragma unroll
  for (int i = 0; i < kGroup; i += 2) {
    if constexpr (kInPairs<activation, N>) {
      const float2 slope = fast_gelu_and_slope({v[i], v[i + 1]}).slope;
      g[i] *= slope.x, g[i + 1] *= slope.y;
    } else {
      g[i] *= derivative<activation, N>(v[i]), g[i + 1] *= derivative<activation, N>(v[i + 1]);
    }
  }
  put_group(dx, 0, c, size, g);
}

// A thread's eight elements of (rows, width).
struct Place {
  std::int64_t row, column;
  __device__ explicit Place(std::int64_t width) {
    const std::int64_t groups = (width + kGroup - 1) / kGroup,
                       i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    row = i / groups, column = i % groups * kGroup;
  }
};
unsigned place_blocks(std::int64_t rows, std::int64_t width) {
  return blocks_for(rows * ((width + kGroup - 1) / kGroup), kThreads);
}

template <typename N>
__global__ void silu_of_columns(std::int64_t rows, std::int64_t width, const N* x, std::int64_t stride,
                                Target<N> y) {
  hstu::cuda::wait_for_previous_launch();
  const Place at(width);
  if (at.row >= rows) return;
  float v[kGroup];
  load_group(x + at.row * stride, at.column, width, v);
#pragma unroll
  for (int k = 0; k < kGroup; k += 2) {
    if constexpr (sizeof(N) == 2) {  // the bits of products that activate their results
      const float2 pair = fast_silu({v[k], v[k + 1]});
      v[k] = pair.x, v[k + 1] = pair.y;
    } else {
      v[k] = silu_for<N>(v[k]), v[k + 1] = silu_for<N>(v[k + 1]);
    }
  }
  put_group(y, at.row * width, at.column, width, v);
}

template <typename N>
__global__ void multiply_by_slope(std::int64_t rows, std::int64_t width, std::int64_t stride, const N* x,
                                  Target<N> dx) {
  hstu::cuda::wait_for_previous_launch();
  const Place at(width);
  if (at.row >= rows) return;
  float v[kGroup], g[kGroup];
  load_group(x + at.row * stride, at.column, width, v);
  load_group(dx.to + at.row * stride, at.column, width, g);
#pragma unroll
  for (int k = 0; k < kGroup; ++k) g[k] *= silu_derivative_for<N>(v[k]);
  put_group(dx, at.row * stride, at.column, width, g);
}

template <Activation activation, typename T>
void forward(const Activate<T>& p, CudaStream stream) {
  hstu::cuda::launch("activation", activate_elements<activation, Native<T>>,
                     blocks_for(p.size, kGroup * kThreads), kThreads, stream.handle, p.size, native(p.x),
                     Target<Native<T>>{native(p.y)});
}

template <Activation activation, typename T>
void backward(const ActivateBackward<T>& p, CudaStream stream) {
  hstu::cuda::launch("activation, backward", differentiate_elements<activation, Native<T>>,
                     blocks_for(p.size, kGroup * kThreads), kThreads, stream.handle, p.size, native(p.x),
                     native(p.dy), target(p.dx));
}

}  // namespace

template <typename T>
void activate(const Activate<T>& p, CudaStream stream) {
  if (p.size == 0) return;
  if (p.activation == Activation::relu) forward<Activation::relu>(p, stream);
  if (p.activation == Activation::gelu) forward<Activation::gelu>(p, stream);
  if (p.activation == Activation::silu) forward<Activation::silu>(p, stream);
}

template <typename T>
void activate_backward(const ActivateBackward<T>& p, CudaStream stream) {
  if (p.size == 0 || p.dx.to == nullptr) return;
  if (p.activation == Activation::relu) backward<Activation::relu>(p, stream);
  if (p.activation == Activation::gelu) backward<Activation::gelu>(p, stream);
  if (p.activation == Activation::silu) backward<Activation::silu>(p, stream);
}

template <typename T>
void silu_columns(const SiluColumns<T>& p, CudaStream stream) {
  const std::int64_t width = p.columns - p.from;
  if (p.rows * width == 0) return;
  hstu::cuda::launch("SiLU of columns", silu_of_columns<Native<T>>, place_blocks(p.rows, width), kThreads,
                     stream.handle, p.rows, width, native(p.x) + p.from, p.columns,
                     Target<Native<T>>{native(p.y)});
}

template <typename T>
void silu_slope(const SiluSlope<T>& p, CudaStream stream) {
  if (p.rows * p.width == 0) return;
  hstu::cuda::launch("slope of SiLU", multiply_by_slope<Native<T>>, place_blocks(p.rows, p.width), kThreads,
                     stream.handle, p.rows, p.width, p.stride, native(p.x), Target<Native<T>>{native(p.dx)});
}

template void silu_columns(const SiluColumns<float>&, CudaStream);
template void silu_columns(const SiluColumns<BFloat16>&, CudaStream);
template void silu_slope(const SiluSlope<float>&, CudaStream);
template void silu_slope(const SiluSlope<BFloat16>&, CudaStream);
template void activate(const Activate<float>&, CudaStream);
template void activate(const Activate<BFloat16>&, CudaStream);
template void activate_backward(const ActivateBackward<float>&, CudaStream);
template void activate_backward(const ActivateBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
