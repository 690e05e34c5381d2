// Names of element types in safetensors headers.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "hstu/tensor/tensor.h"

namespace hstu {

inline constexpr std::array<std::pair<DType, std::string_view>, 7> kSafetensorsTypes{{
    {DType::f32, "F32"},
    {DType::f64, "F64"},
    {DType::bf16, "BF16"},
    {DType::f16, "F16"},
    {DType::i32, "I32"},
    {DType::i64, "I64"},
    {DType::u8, "U8"},
}};

constexpr std::string_view safetensors_name(DType dtype) {
  for (const auto& [type, name] : kSafetensorsTypes)
    if (type == dtype) return name;
  return "";
}

constexpr std::optional<DType> safetensors_dtype(std::string_view name) {
  for (const auto& [type, known] : kSafetensorsTypes)
    if (known == name) return type;
  return std::nullopt;
}

}  // namespace hstu
