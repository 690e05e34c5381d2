// One row of a layer normalisation, shared by all normalising kernels.
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
// dx = or += rstd (g - average(g) - n average(g n)), by `accumulate`; dweight += dn n; dbias += dn. scratch
// (width) may be overwritten.
template <typename T>
inline void row_backward(const T* x, RowStatistics<T> s, const T* weight, const T* dn, std::int64_t width,
                         bool accumulate, T* dx, T* scratch, T* dweight, T* dbias) {
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
  T* const result = accumulate ? scratch : dx;
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    const T n = (x[c] - s.mean) * s.rstd;
    result[c] = s.rstd * (dn[c] * weight[c] - average_g - n * average_gn);
  }
  if (!accumulate) return;
    // A separate loop: in one expression compilers may or may not fuse the product and the sum.
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) dx[c] += result[c];
}

}  // namespace hstu::kernels
