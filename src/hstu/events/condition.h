// A condition on one column of the log: "event_type = listen", "played_ratio_pct >= 50".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hstu/events/column_source.h"

namespace hstu {

enum class Comparison { kEqual, kNotEqual, kLess, kAtMost, kMore, kAtLeast };

struct Condition {
  std::string column;
  Comparison comparison = Comparison::kEqual;
  std::string value;  // a number or a text, depending on the column
  bool operator==(const Condition&) const = default;
};

// Parses COLUMN OPERATOR VALUE with = != < <= > >=. Blanks around the parts are ignored; a value that begins
// or ends with blanks must be quoted. UsageError for any other text.
Condition parse_condition(std::string_view text);
std::string to_string(const Condition& condition);

// Sets mask[r] to 0 for every row r that does not satisfy the condition. Texts support = and != only. A null
// counts as 0; a null text equals nothing. UsageError naming `file` if the condition does not fit the type of
// the column.
void keep_matching(const Condition& condition, const RawColumn& column, const std::string& file,
                   std::span<std::uint8_t> mask);

}  // namespace hstu
