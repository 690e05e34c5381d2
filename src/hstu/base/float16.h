// The two 16-bit floating-point types, to store and convert: arithmetic is done in float.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace hstu {

// bfloat16: the upper half of a float. Conversion rounds to nearest even; a NaN remains a NaN.
class BFloat16 {
 public:
  BFloat16() = default;
  explicit constexpr BFloat16(float value) : bits_(rounded(std::bit_cast<std::uint32_t>(value))) {}
  explicit constexpr operator float() const { return std::bit_cast<float>(std::uint32_t{bits_} << 16); }

  static constexpr BFloat16 from_bits(std::uint16_t bits) {
    BFloat16 result(0.0f);
    result.bits_ = bits;
    return result;
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr std::uint16_t rounded(std::uint32_t f) {
    if ((f & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((f >> 16) | 0x40u);
    return static_cast<std::uint16_t>((f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
  }
  std::uint16_t bits_;
};

// IEEE binary16. Conversion rounds to nearest even, to infinity from 65,520 on; a NaN remains a NaN.
class Float16 {
 public:
  Float16() = default;
  explicit constexpr Float16(float value) : bits_(rounded(std::bit_cast<std::uint32_t>(value))) {}
  explicit constexpr operator float() const {
    const std::uint32_t sign = (bits_ & 0x8000u) << 16, rest = bits_ & 0x7fffu;
    if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest >= 0x0400u) return std::bit_cast<float>(sign | ((rest << 13) + (112u << 23)));
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;  // subnormal
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }

  static constexpr Float16 from_bits(std::uint16_t bits) {
    Float16 result(0.0f);
    result.bits_ = bits;
    return result;
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr std::uint16_t rounded(std::uint32_t f) {
    const std::uint32_t sign = (f >> 16) & 0x8000u, rest = f & 0x7fffffffu;
    if (rest > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((rest >> 13) & 0x3ffu));
    if (rest >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (rest < 0x38800000u) {  // subnormal: a float near 1/2 has the same spacing, so the addition rounds
      const float shifted = std::bit_cast<float>(rest) + 0.5f;
      return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    const std::uint32_t exponent_moved = rest - (112u << 23);
    return static_cast<std::uint16_t>(sign |
                                      ((exponent_moved + 0xfffu + ((exponent_moved >> 13) & 1u)) >> 13));
  }
  std::uint16_t bits_;
};

// The type of sums over elements of T, of statistics, of the weights and biases of norms and of all gradients
// of weights: float for f32, bf16 and f16, double for f64.
template <typename T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace hstu
