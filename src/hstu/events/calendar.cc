#include "hstu/events/calendar.h"

#include <cmath>
#include <cstddef>

#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

// Timestamps and texts of dates are no numbers.
std::optional<std::int64_t> number_at(const RawColumn& column, std::size_t row) {
  switch (column.kind) {
    case RawColumn::Kind::kInteger:
      return column.integers[row];
    case RawColumn::Kind::kReal:
      if (!(std::abs(column.reals[row]) < kLargestExact)) return std::nullopt;
      return static_cast<std::int64_t>(column.reals[row]);
    case RawColumn::Kind::kText:
      return column.integers[row] < 0
                 ? std::nullopt
                 : parse_number<std::int64_t>(column.texts[static_cast<std::size_t>(column.integers[row])]);
    case RawColumn::Kind::kSeconds:
      break;
  }
  return std::nullopt;
}

}  // namespace

void check_time_unit(const RawBatch& batch, const RawColumn& column, std::int64_t first, std::int64_t last,
                     std::int64_t seconds, std::string_view unit) {
  const std::int64_t year = calendar_year(seconds);
  if (is_plausible_year(year)) return;
  const auto earliest = number_at(column, static_cast<std::size_t>(first));
  const auto value = number_at(column, static_cast<std::size_t>(last));
  if (!earliest || !value) return;
  const auto fitting = fitting_unit(*value), fitting_earliest = fitting_unit(*earliest);
  if (!fitting || !fitting_earliest || fitting->unit != fitting_earliest->unit || fitting->unit == unit)
    return;
  fail_usage(
      "{}: with time_unit = \"{}\" the time {} is in the year {}, with time_unit = \"{}\" in {}: change "
      "time_unit, or set relative_time = true if times do not count from 1970",
      place_of(batch, column, last), unit, *value, year, fitting->unit, fitting->year);
}

}  // namespace hstu
