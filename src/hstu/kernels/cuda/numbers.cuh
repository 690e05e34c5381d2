// Element types on a device: the host's 16-bit classes become CUDA's, and arithmetic is done in float.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>

#include "hstu/base/float16.h"
#include "hstu/device/cuda/ptx.cuh"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels::cuda {

template <typename T>
using Native = std::conditional_t<std::is_same_v<T, BFloat16>, __nv_bfloat16, T>;

template <typename T>
const Native<T>* native(const T* data) {
  return reinterpret_cast<const Native<T>*>(data);
}
template <typename T>
Native<T>* native(T* data) {
  return reinterpret_cast<Native<T>*>(data);
}

__device__ inline float to_float(float x) {
  return x;
}
__device__ inline float to_float(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <typename N>
__device__ N from_float(float x) {
  if constexpr (std::is_same_v<N, __nv_bfloat16>)
    return __float2bfloat16(x);
  else
    return x;
}

// A Gradient of native elements, as kernels take it.
template <typename N>
struct Target {
  N* to = nullptr;  // null: not wanted
  bool accumulate = false;
  bool late = false;

  __device__ void put(std::int64_t i, float x) const {
    to[i] = from_float<N>(accumulate ? to_float(to[i]) + x : x);
  }
};
template <typename T>
Target<Native<T>> target(const Gradient<T>& gradient) {
  return {native(gradient.to), gradient.accumulate, gradient.late};
}

__device__ inline float relu_of(float x) {
  return x > 0 ? x : x * 0;  // NaN in, NaN out
}
__device__ inline float relu_slope(float x) {
  return x > 0 ? 1.0f : 0.0f;
}

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}
// 1 + e^-x to about 2^-22, denormals as zero.
__device__ inline float one_and_exp_of_minus(float x) {
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(-1.4426950408889634f * x));
  return 1.0f + e;
}
using hstu::cuda::fast_reciprocal;
// For rows of N: results in 16 bits do not need the last bits of an exponential.
template <typename N>
__device__ float sigmoid_for(float x) {
  return sizeof(N) == 2 ? fast_reciprocal(one_and_exp_of_minus(x)) : sigmoid(x);
}
template <typename N>
__device__ float silu_for(float x) {
  return x * sigmoid_for<N>(x);
}
// The sigmoids of both for 16 bits, with one reciprocal of the product of the denominators. So that it is
// finite, numbers below -41 become -41: their SiLU and its slope are then -7e-17 in place of less.
__device__ inline float2 fast_sigmoids(float2& x) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x.x) : "f"(-41.0f));
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(x.y) : "f"(-41.0f));
  const float a = one_and_exp_of_minus(x.x), b = one_and_exp_of_minus(x.y), r = fast_reciprocal(a * b);
  return {r * b, r * a};
}
__device__ inline float2 fast_silu(float2 x) {
  const float2 s = fast_sigmoids(x);
  return {x.x * s.x, x.y * s.y};
}
__device__ inline float2 fast_silu_derivative(float2 x) {
  const float2 s = fast_sigmoids(x);
  return {s.x * (1 + x.x * (1 - s.x)), s.y * (1 + x.y * (1 - s.y))};
}
template <typename N>
__device__ float silu_derivative_for(float x) {
  const float s = sigmoid_for<N>(x);
  return s * (1 + x * (1 - s));
}

}  // namespace hstu::kernels::cuda
