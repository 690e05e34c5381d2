// A condition on one column of the log: "event_type = listen", "played_ratio_pct >= 50".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hstu/columns/column_source.h"

namespace hstu {

enum class Comparison { kEqual, kNotEqual, kLess, kAtMost, kMore, kAtLeast };

struct Condition {
  std::string column;
  Comparison comparison = Comparison::kEqual;
  std::string value;  // a number or a text, depending on the column
  bool operator==(const Condition&) const = default;
};

// Parses COLUMN OPERATOR VALUE with = != < <= > >=. Blanks around the parts are ignored; a column or value
// that begins or ends with a blank or a quote, or contains a character of the operators, must be quoted
// ('...' or
// "..."). UsageError for any other text, with a caret under the place.
Condition parse_condition(std::string_view text);
// A text that parse_condition() reads as the same condition.
std::string to_string(const Condition& condition);

// Sets mask[r] to 0 for every row r that does not satisfy the condition. Texts support = and != only. A null
// counts as 0; a null text equals nothing. UsageError naming `file` if the condition does not fit the type of
// the column.
void keep_matching(const Condition& condition, const RawColumn& column, const std::string& file,
                   std::span<std::uint8_t> mask);

}  // namespace hstu
