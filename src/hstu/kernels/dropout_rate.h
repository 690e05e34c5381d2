// A rate of dropout (kernels/dropout.h) in the numbers that draws are compared with. Always inlined: loops
// are compiled for several instruction sets, whose functions must not take each other's place.
#pragma once

#include <cstdint>

namespace hstu::kernels {

// t of kernels/dropout.h: smaller pieces of 16 bits drop. Rounds half up.
[[gnu::always_inline]] inline std::uint32_t dropout_threshold(double rate) {
  return static_cast<std::uint32_t>(__builtin_lround(rate * 65536));
}

// The factor of what is kept.
[[gnu::always_inline]] inline double kept_factor(std::uint32_t threshold) {
  return 65536.0 / (65536.0 - threshold);
}

}  // namespace hstu::kernels
