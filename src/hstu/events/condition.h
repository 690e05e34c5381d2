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
  std::string value;  // a number or a text, whatever the column holds
  bool operator==(const Condition&) const = default;
};

// COLUMN OPERATOR VALUE with = != < <= > >=; blanks around the parts do not count, a value with blanks of its
// own may stand in quotes. UsageError for anything else.
Condition parse_condition(std::string_view text);
std::string to_string(const Condition& condition);

// mask[r] stays 1 only where row r satisfies the condition. Texts know = and != only. A null counts as 0; a
// null text equals nothing. UsageError naming `file` when the condition does not fit the column's type.
void keep_matching(const Condition& condition, const RawColumn& column, const std::string& file,
                   std::span<std::uint8_t> mask);

}  // namespace hstu
