// A value of a JSON file with its place: what is missing or of another type is an error that names the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/choice.h"
#include "hstu/base/error.h"
#include "hstu/base/json_text.h"

namespace hstu {

// One JSON value and its place ("manifest.json: counts.events"), which every error message names.
class JsonField {
 public:
  JsonField(const Json& value, std::string place) : value_(value), place_(std::move(place)) {}

  JsonField operator[](const std::string& key) const {
    check(value_.is_object(), "{}: expected an object, found {}", place_, value_.type_name());
    check(value_.contains(key), "{}: the field \"{}\" is missing", place_, key);
    return {value_[key], fmt::format("{}: {}", place_, key)};
  }
  std::string text() const {
    check(value_.is_string(), "{}: expected a string, found {}", place_, value_.dump());
    return value_.get<std::string>();
  }
  std::int64_t integer() const {
    check(value_.is_number_integer(), "{}: expected an integer, found {}", place_, value_.dump());
    return value_.get<std::int64_t>();
  }
  bool boolean() const {
    check(value_.is_boolean(), "{}: expected true or false, found {}", place_, value_.dump());
    return value_.get<bool>();
  }
  template <typename Enum, std::size_t kCount>
  Enum choice(const Choice<Enum> (&table)[kCount]) const {
    const std::string word = text();
    for (const Choice<Enum>& known : table)
      if (known.word == word) return known.value;
    fail("{}: expected {}, found \"{}\"", place_, list_of(table), word);
  }
  std::optional<std::int64_t> optional_integer() const {
    return is_null() ? std::nullopt : std::optional(integer());
  }
  std::int64_t count() const {
    const std::int64_t value = integer();
    check(value >= 0, "{}: expected a count of at least 0, found {}", place_, value);
    return value;
  }
  bool is_null() const { return value_.is_null(); }
  bool has(const std::string& key) const { return value_.is_object() && value_.contains(key); }

  std::vector<JsonField> elements() const {
    check(value_.is_array(), "{}: expected a list, found {}", place_, value_.type_name());
    std::vector<JsonField> fields;
    for (std::size_t i = 0; i < value_.size(); ++i)
      fields.emplace_back(value_[i], fmt::format("{}[{}]", place_, i));
    return fields;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> list;
    for (const JsonField& element : elements()) list.push_back(element.text());
    return list;
  }
  std::vector<std::string> keys() const {
    check(value_.is_object(), "{}: expected an object, found {}", place_, value_.type_name());
    std::vector<std::string> list;
    for (const auto& entry : value_.items()) list.push_back(entry.key());
    return list;
  }
  const std::string& place() const { return place_; }

 private:
  const Json& value_;
  std::string place_;
};

}  // namespace hstu
