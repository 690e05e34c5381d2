// Element types on a device: the host's 16-bit classes become CUDA's, and arithmetic is done in float.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>

#include "hstu/base/float16.h"
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

  __device__ void put(std::int64_t i, float x) const {
    to[i] = from_float<N>(accumulate ? to_float(to[i]) + x : x);
  }
};
template <typename T>
Target<Native<T>> target(const Gradient<T>& gradient) {
  return {native(gradient.to), gradient.accumulate};
}

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}
// For rows of N: results in 16 bits do not need the last bits of an exponential.
template <typename N>
__device__ float sigmoid_for(float x) {
  return sizeof(N) == 2 ? __fdividef(1.0f, 1.0f + __expf(-x)) : sigmoid(x);
}
template <typename N>
__device__ float silu_for(float x) {
  return x * sigmoid_for<N>(x);
}
template <typename N>
__device__ float silu_derivative_for(float x) {
  const float s = sigmoid_for<N>(x);
  return s * (1 + x * (1 - s));
}

}  // namespace hstu::kernels::cuda
