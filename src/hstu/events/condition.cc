#include "hstu/events/condition.h"

#include <optional>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/raw_checks.h"

namespace hstu {
namespace {

template <typename Element, typename Holds>
void keep_where(std::span<const Element> values, std::span<std::uint8_t> mask, const Holds& holds) {
  for (std::size_t r = 0; r < mask.size(); ++r) mask[r] &= static_cast<std::uint8_t>(holds(values[r]));
}

// The comparison is selected once per column, not once per row.
template <typename Element, typename Number>
void compare(std::span<const Element> values, Comparison comparison, Number bound,
             std::span<std::uint8_t> mask) {
  const auto number = [](Element value) { return static_cast<Number>(value); };
  switch (comparison) {
    case Comparison::kEqual:
      return keep_where(values, mask, [&](Element v) { return number(v) == bound; });
    case Comparison::kNotEqual:
      return keep_where(values, mask, [&](Element v) { return number(v) != bound; });
    case Comparison::kLess:
      return keep_where(values, mask, [&](Element v) { return number(v) < bound; });
    case Comparison::kAtMost:
      return keep_where(values, mask, [&](Element v) { return number(v) <= bound; });
    case Comparison::kMore:
      return keep_where(values, mask, [&](Element v) { return number(v) > bound; });
    case Comparison::kAtLeast:
      return keep_where(values, mask, [&](Element v) { return number(v) >= bound; });
  }
}

void compare_texts(const Condition& condition, const RawColumn& column, const std::string& file,
                   std::span<std::uint8_t> mask) {
  const bool equal = condition.comparison == Comparison::kEqual;
  if (!equal && condition.comparison != Comparison::kNotEqual) {
    fail_usage(
        "{}: the condition \"{}\" orders the column \"{}\", which contains text ({}): use = or !={}", file,
        to_string(condition), column.name, column.type_name,
        parse_number<double>(condition.value)
            ? fmt::format(
                  "; if it is a column of CSV files that holds integers, set integers = [\"{}\"] in "
                  "the schema, because ids, attributes, contexts and allowed_texts are texts without it",
                  column.name)
            : "");
  }
  std::vector<std::uint8_t> holds;  // per text of the dictionary
  for (const std::string& text : column.texts) holds.push_back((text == condition.value) == equal ? 1 : 0);
  keep_where(std::span<const std::int64_t>(column.integers), mask, [&](std::int64_t code) {
    return code < 0 ? !equal : holds[static_cast<std::size_t>(code)] != 0;
  });
}

}  // namespace

void keep_matching(const Condition& condition, const RawColumn& column, const std::string& file,
                   std::span<std::uint8_t> mask) {
  if (column.kind == RawColumn::Kind::kText) return compare_texts(condition, column, file, mask);
  const std::optional<double> real = parse_number<double>(condition.value);
  if (column.untyped && !real) {  // texts in other files
    return keep_where(std::span<const std::int64_t>(column.integers), mask,
                      [&](std::int64_t) { return condition.comparison == Comparison::kNotEqual; });
  }
  if (!real) {
    fail_usage("{}: the condition \"{}\" needs a number: the column \"{}\" contains {}", file,
               to_string(condition), column.name, column.type_name);
  }
  if (column.kind == RawColumn::Kind::kReal) {
    const bool equality =
        condition.comparison == Comparison::kEqual || condition.comparison == Comparison::kNotEqual;
    if (equality && is_rounded_integer(condition.value))
      fail_usage(
          "{}: the condition \"{}\" compares doubles of the column \"{}\" with an integer that a "
          "double rounds; if it is a column of CSV files, set integers = [\"{}\"] in the schema",
          file, to_string(condition), column.name, column.name);
    return compare(std::span<const double>(column.reals), condition.comparison, *real, mask);
  }
  const std::span<const std::int64_t> integers(column.integers);
  // Integers are compared as integers: ids above 2^53 are not exact as doubles.
  if (const auto whole = parse_number<std::int64_t>(condition.value)) {
    return compare(integers, condition.comparison, *whole, mask);
  }
  compare(integers, condition.comparison, *real, mask);
}

}  // namespace hstu
