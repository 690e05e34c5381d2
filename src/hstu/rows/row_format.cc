#include "hstu/rows/row_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "hstu/base/float16.h"
#include "hstu/base/random.h"
#include "hstu/rows/initial_value.h"

namespace hstu {
namespace {

constexpr std::int64_t kColumns = 8;  // of one draw

// A bf16 in memory of floats.
void put(float* stored, std::int64_t column, BFloat16 value) {
  std::memcpy(reinterpret_cast<std::byte*>(stored) + column * std::int64_t{sizeof(value)}, &value,
              sizeof(value));
}

// `random`: 16 bits, which are added below the bits that remain.
BFloat16 rounded_up_or_down(float value, std::uint32_t random) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7f800000u) == 0x7f800000u) return BFloat16(value);  // not finite
  return BFloat16::from_bits(static_cast<std::uint16_t>((bits + random) >> 16));
}

}  // namespace

std::uint64_t rounding_key(const RowShape& shape) {
  return derive_key(shape.key, "rounding");
}

RowFormat::RowFormat(const RowShape& shape) : shape_(shape), key_(rounding_key(shape)) {}

void RowFormat::begin(std::int64_t id, float* values) const {
  initial_row(shape_.key, id, shape_.initial, shape_.bound, shape_.dim, values, shape_.first_column);
  if (is_f32()) return;
  for (float& value : std::span(values, static_cast<std::size_t>(shape_.dim)))
    value = static_cast<float>(BFloat16(value));
}

void RowFormat::load(const float* stored, float* values) const {
  if (is_f32()) {
    std::copy_n(stored, shape_.dim, values);
    return;
  }
  const auto* const words = reinterpret_cast<const std::byte*>(stored);
  for (std::int64_t i = 0; i < shape_.dim; ++i) {
    BFloat16 value;
    std::memcpy(&value, words + i * std::int64_t{sizeof(value)}, sizeof(value));
    values[i] = static_cast<float>(value);
  }
}

void RowFormat::store(const float* values, float* stored) const {
  if (is_f32()) {
    std::copy_n(values, shape_.dim, stored);
    return;
  }
  for (std::int64_t i = 0; i < shape_.dim; ++i) put(stored, i, BFloat16(values[i]));
}

void RowFormat::store_update(const float* values, std::int64_t id, std::int64_t step, float* stored) const {
  if (is_f32()) return store(values, stored);
  Philox4 bits{};
  for (std::int64_t i = 0; i < shape_.dim; ++i) {
    const std::int64_t column = shape_.first_column + i, place = column % kColumns;
    if (i == 0 || place == 0)
      bits = philox(key_, static_cast<std::uint64_t>(id),
                    (static_cast<std::uint64_t>(step) << 24) + static_cast<std::uint64_t>(column / kColumns));
    const std::uint32_t word = bits[static_cast<std::size_t>(place / 2)];
    put(stored, i, rounded_up_or_down(values[i], place % 2 == 0 ? word & 0xffffu : word >> 16));
  }
}

}  // namespace hstu
