// Elementwise functions that compilers can vectorise: no branches, no library calls in float. They are always
// inlined and call no inline function of the standard library, as files of several instruction sets need it
// (loops/table.cc).
#pragma once

#include <cstdint>

namespace hstu::kernels {

// condition ? a : b. From a ?: of exp() g++ makes a path of its own for large arguments, where sigmoid(x) is
// a constant, and multiplies every x by it: a number so small that each product takes a hundred cycles.
[[gnu::always_inline]] inline float select(bool condition, float a, float b) {
  const std::int32_t mask = -static_cast<std::int32_t>(condition);
  return __builtin_bit_cast(
      float, (__builtin_bit_cast(std::int32_t, a) & mask) | (__builtin_bit_cast(std::int32_t, b) & ~mask));
}

// e^x. In float: a polynomial of degree 6 on [-ln2/2, ln2/2], relative error below 2e-7, NaN in NaN out,
// saturating to 0 and to about 2^127 beyond the range of float. In double: the library's.
[[gnu::always_inline]] inline double exp(double x) {
  return __builtin_exp(x);
}
[[gnu::always_inline]] inline float exp(float x) {
  constexpr float kLow = -87.0f, kHigh = 88.0f;
  x = select(x < kLow, kLow, x);
  x = select(x > kHigh, kHigh, x);
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it puts the nearest integer in the low bits
  const float shifted = x * 1.44269504089f + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const std::int32_t exponent =
      __builtin_bit_cast(std::int32_t, shifted) - __builtin_bit_cast(std::int32_t, kRound);
  return p * __builtin_bit_cast(float, (exponent + 127) << 23);
}

template <typename T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

template <typename T>
[[gnu::always_inline]] inline T silu(T x) {
  return x * sigmoid(x);
}

}  // namespace hstu::kernels
