// Element types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "hstu/base/choice.h"
#include "hstu/base/error.h"
#include "hstu/base/float16.h"

namespace hstu {

enum class DType { f32, f64, bf16, f16, i32, i64, u8 };

constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::u8:
      return 1;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::f32:
    case DType::i32:
      return 4;
    default:
      return 8;
  }
}
inline constexpr Choice<DType> kDTypes[] = {
    {"f32", DType::f32}, {"f64", DType::f64}, {"bf16", DType::bf16}, {"f16", DType::f16},
    {"i32", DType::i32}, {"i64", DType::i64}, {"u8", DType::u8},
};
std::string to_string(DType type);  // "bf16"

// Of what sums over elements of `type` are kept in (Accumulator).
constexpr DType accumulator_of(DType type) {
  return type == DType::f64 ? DType::f64 : DType::f32;
}

template <typename T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<BFloat16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<Float16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}

// Calls body.template operator()<float or double>() for work on the host that both types share. Throws
// InternalError for other types.
template <typename Body>
void with_float_type(DType type, const Body& body) {
  if (type == DType::f32) return body.template operator()<float>();
  if (type == DType::f64) return body.template operator()<double>();
  require(false, "expected f32 or f64, found {}", to_string(type));
}

}  // namespace hstu

template <>
struct fmt::formatter<hstu::DType> : hstu::ToStringFormatter<hstu::DType> {};
