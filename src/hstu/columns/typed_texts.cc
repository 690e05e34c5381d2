#include "hstu/columns/typed_texts.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/event_times.h"

namespace hstu {
namespace {

// Each text as a number; nothing if one is none.
template <typename Number>
std::optional<std::vector<Number>> numbers(const RawColumn& column) {
  std::vector<Number> of_texts;
  for (const std::string& text : column.texts) {
    const auto number = parse_number<Number>(text);
    if (!number) return std::nullopt;
    of_texts.push_back(*number);
  }
  std::vector<Number> values;
  values.reserve(column.integers.size());
  for (const std::int64_t code : column.integers)
    values.push_back(code < 0 ? Number{} : of_texts[static_cast<std::size_t>(code)]);
  return values;
}

// Without nulls; a text of digits alone is a number, which comes first.
std::optional<EventTimes> times(const RawBatch& batch, const RawColumn& column) {
  const bool digits = !column.texts.empty() && !column.texts.front().empty() &&
                      std::isdigit(static_cast<unsigned char>(column.texts.front().front())) != 0;
  if (!digits || !column.nulls.empty()) return std::nullopt;
  try {
    return times_of(batch, column, TimeUnit::kSeconds);
  } catch (const Error&) {  // not all texts are times
    return std::nullopt;
  }
}

// "0001380000": an id whose zeros count. "0" and "0.5" are numbers.
bool has_leading_zero(std::string_view text) {
  return text.size() > 1 && text[0] == '0' && std::isdigit(static_cast<unsigned char>(text[1])) != 0;
}

}  // namespace

RawColumn typed(const RawBatch& batch, const RawColumn& column) {
  if (column.kind != RawColumn::Kind::kText || column.texts.empty()) return column;
  if (std::any_of(column.texts.begin(), column.texts.end(), has_leading_zero)) return column;
  RawColumn result = column;
  result.texts.clear();
  if (auto integers = numbers<std::int64_t>(column)) {
    result.kind = RawColumn::Kind::kInteger;
    result.type_name = "integer";
    result.integers = *std::move(integers);
    return result;
  }
  if (auto reals = numbers<double>(column)) {
    result.kind = RawColumn::Kind::kReal;
    result.type_name = "number";
    result.integers.clear();
    result.reals = *std::move(reals);
    return result;
  }
  if (auto found = times(batch, column)) {
    result.kind = RawColumn::Kind::kSeconds;
    result.type_name = "time";
    result.integers = std::move(found->seconds);
    return result;
  }
  return column;
}

}  // namespace hstu
