// Exponentials of rows, and the largest element of a row.
#pragma once

#include <cstdint>

#include "hstu/kernels/loops/norm_rows.h"
#include "hstu/kernels/math.h"

namespace hstu::kernels {
namespace {

// The bits of a maximum do not depend on the order, so 16 side by side need no care.
template <typename T>
T largest(const T* x, std::int64_t count) {
  T most[kSums];
  for (T& m : most) m = x[0];
  const std::int64_t whole = count / kSums * kSums;
  for (std::int64_t i = 0; i < whole; i += kSums) {
#pragma omp simd
    for (std::int64_t l = 0; l < kSums; ++l) most[l] = x[i + l] > most[l] ? x[i + l] : most[l];
  }
  T result = most[0];
  for (const T m : most) result = m > result ? m : result;
  for (std::int64_t i = whole; i < count; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

template <typename T>
T exponentials(T* x, std::int64_t count, T shift, T factor) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) x[i] = exp(x[i] - shift) * factor;
  const std::int64_t whole = count / kSums * kSums;
  LaneSums<T> sums;
  for (std::int64_t i = 0; i < whole; i += kSums) {
    for (int v = 0; v < sums.kCount; ++v) sums.sum[v] += load(x + i + v * kLanes<T>);
  }
  return sums.total(
      count - whole, [&](std::int64_t i, T & sum) __attribute__((always_inline)) { sum += x[whole + i]; });
}

}  // namespace
}  // namespace hstu::kernels
