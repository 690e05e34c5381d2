// One row of a layer normalisation, shared by every kernel that normalises.
#pragma once

#include <cmath>
#include <cstdint>

namespace hstu::kernels {

template <typename T>
struct RowStatistics {
  T mean, rstd;
};

template <typename T>
inline RowStatistics<T> row_statistics(const T* x, std::int64_t width, T epsilon) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < width; ++c) sum += x[c];
  const T mean = sum / static_cast<T>(width);
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t c = 0; c < width; ++c) squares += (x[c] - mean) * (x[c] - mean);
  return {mean, T(1) / std::sqrt(squares / static_cast<T>(width) + epsilon)};
}

// With n = (x - mean) rstd and g = dn weight, where dn is the gradient of the affine result:
// dx = rstd (g - average(g) - n average(g n)) + beta dx; dweight += dn n; dbias += dn.
template <typename T>
inline void row_backward(const T* x, RowStatistics<T> s, const T* weight, const T* dn, std::int64_t width,
                         T beta, T* dx, T* dweight, T* dbias) {
  T sum_g = 0, sum_gn = 0;
#pragma omp simd reduction(+ : sum_g, sum_gn)
  for (std::int64_t c = 0; c < width; ++c) {
    const T n = (x[c] - s.mean) * s.rstd;
    const T g = dn[c] * weight[c];
    sum_g += g;
    sum_gn += g * n;
    dweight[c] += dn[c] * n;
    dbias[c] += dn[c];
  }
  const T average_g = sum_g / static_cast<T>(width), average_gn = sum_gn / static_cast<T>(width);
  if (beta == T(0)) {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      const T n = (x[c] - s.mean) * s.rstd;
      dx[c] = s.rstd * (dn[c] * weight[c] - average_g - n * average_gn);
    }
  } else {
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      const T n = (x[c] - s.mean) * s.rstd;
      dx[c] = beta * dx[c] + s.rstd * (dn[c] * weight[c] - average_g - n * average_gn);
    }
  }
}

}  // namespace hstu::kernels
