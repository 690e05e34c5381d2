// Rows of q, k, v, o and their gradients as the kernels on CUDA cores read and write them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hstu/attention/problem.h"

namespace hstu::cuda {

template <typename T>
struct Rows {
  T* data;
  std::int64_t row_stride, head_stride;
  __device__ T* at(std::int64_t row, int head) const { return data + row * row_stride + head * head_stride; }
};
template <typename T>
Rows<const T> rows_of(const AttentionInput& r) {
  return {static_cast<const T*>(r.data), r.row_stride, r.head_stride};
}

// Where results go; `accumulate`: they are added to what is there.
template <typename T>
struct Output {
  Rows<T> rows;
  bool accumulate;
};
template <typename T>
Output<T> output_of(const AttentionRows& r, bool accumulate) {
  return {{static_cast<T*>(r.data), r.row_stride, r.head_stride}, accumulate};
}

// silu(x) and its derivative.
struct Silu {
  float value, slope;
};
__device__ __forceinline__ Silu silu_of(float x, float sigmoid_of_x) {
  return {x * sigmoid_of_x, sigmoid_of_x * (1.0f + x * (1.0f - sigmoid_of_x))};
}

}  // namespace hstu::cuda
