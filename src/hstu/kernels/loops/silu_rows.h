// SiLU and its gradient over adjacent elements, and sums of rows.
#pragma once

#include <cstdint>

#include "hstu/kernels/math.h"

namespace hstu::kernels {
namespace {

template <typename T>
void scaled_silu(T* x, std::int64_t count, T alpha, T scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] = silu(alpha * x[i]) * scale;
}

template <typename T>
void scaled_silu_backward(T* x, T* dy, std::int64_t count, T alpha, T scale) {
  const T slope = alpha * scale;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T z = alpha * x[i];
    const T s = sigmoid(z);
    x[i] = z * s * scale;
    dy[i] *= s * (T(1) + z * (T(1) - s)) * slope;
  }
}

template <typename T>
void silu_row(const T* x, T* y, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = silu(x[i]);
}

template <typename T>
void silu_row_backward(const T* x, T* dy, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const T s = sigmoid(x[i]);
    dy[i] *= s * (T(1) + x[i] * (T(1) - s));
  }
}

template <typename T>
void add_rows(const T* x, std::int64_t rows, std::int64_t n, T* sums) {
  for (std::int64_t r = 0; r < rows; ++r, x += n) {
#pragma omp simd
    for (std::int64_t c = 0; c < n; ++c) sums[c] += x[c];
  }
}

}  // namespace
}  // namespace hstu::kernels
