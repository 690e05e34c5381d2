// The product of two rows on the host.
#pragma once

#include <cstdint>

namespace hstu::kernels {

// a, b (width). The compiler chooses the order of the sum, the same for equal widths.
template <typename T>
T dot(const T* a, const T* b, std::int64_t width) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < width; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace hstu::kernels
