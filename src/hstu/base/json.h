// Json: nlohmann's JSON with three differences. Keys keep the order in which they were added, and one of many
// is found without a look at the others. A float prints its own shortest digits (0.1, not
// 0.10000000149011612), and nan, inf and -inf become the strings "nan", "inf" and "-inf": JSON has no such
// numbers, and null would hide that a value was computed. Absent values are null.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "hstu/base/ordered_map.h"

namespace hstu {

// The double nearest to the shortest decimal digits of `value`.
inline double shortest_double(float value) {
  char digits[32];
  const auto written = std::to_chars(digits, digits + sizeof digits, value);
  double result = 0;
  std::from_chars(digits, written.ptr, result);
  return result;
}

template <typename T, typename = void>
struct JsonSerializer : nlohmann::adl_serializer<T> {};

template <typename T>
struct JsonSerializer<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  template <typename AnyJson>
  static void to_json(AnyJson& json, T value) {
    if (std::isnan(value)) {
      json = "nan";
    } else if (std::isinf(value)) {
      json = value > 0 ? "inf" : "-inf";
    } else if constexpr (std::is_same_v<T, float>) {
      nlohmann::to_json(json, shortest_double(value));
    } else {
      nlohmann::to_json(json, static_cast<double>(value));
    }
  }
  template <typename AnyJson>
  static void from_json(const AnyJson& json, T& value) {
    if (json == "nan") {
      value = std::numeric_limits<T>::quiet_NaN();
    } else if (json == "inf" || json == "-inf") {
      value = json == "inf" ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
    } else {
      nlohmann::from_json(json, value);
    }
  }
};

template <typename T>
struct JsonSerializer<std::optional<T>, void> {
  template <typename AnyJson>
  static void to_json(AnyJson& json, const std::optional<T>& value) {
    if (value) {
      json = *value;
    } else {
      json = nullptr;
    }
  }
  template <typename AnyJson>
  static void from_json(const AnyJson& json, std::optional<T>& value) {
    if (json.is_null()) {
      value.reset();
    } else {
      value = json.template get<T>();
    }
  }
};

using Json = nlohmann::basic_json<OrderedMap, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                                  double, std::allocator, JsonSerializer>;

}  // namespace hstu
