#include "hstu/events/calendar.h"

#include <chrono>
#include <cmath>
#include <cstddef>

#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::int64_t kFirstYear = 1990, kLastYear = 2100;
constexpr std::int64_t kDay = 86'400;

struct Unit {
  std::string_view word;
  std::int64_t per_second;
};
constexpr Unit kUnits[] = {{"s", 1}, {"ms", 1'000}, {"us", 1'000'000}, {"ns", 1'000'000'000}};

// Timestamps and texts of dates are no numbers.
std::optional<std::int64_t> number_at(const RawColumn& column, std::size_t row) {
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53
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

std::int64_t calendar_year(std::int64_t seconds) {
  constexpr std::int64_t kCalendarDays =
      10'000'000;  // the standard library's calendar ends in the year 32767
  const std::int64_t days = floor_divide(seconds, kDay);
  if (days < -kCalendarDays || days > kCalendarDays)
    return 1970 + static_cast<std::int64_t>(static_cast<double>(days) / 365.2425);
  const std::chrono::sys_days date{std::chrono::days{days}};
  return static_cast<int>(std::chrono::year_month_day(date).year());
}

std::string calendar_date(std::int64_t seconds) {
  const std::chrono::year_month_day date{
      std::chrono::sys_days{std::chrono::days{floor_divide(seconds, kDay)}}};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

bool is_plausible_year(std::int64_t year) {
  return year >= kFirstYear && year <= kLastYear;
}

std::optional<FittingUnit> fitting_unit(std::int64_t value) {
  for (const Unit& unit : kUnits) {
    const std::int64_t year = calendar_year(floor_divide(value, unit.per_second));
    if (is_plausible_year(year)) return FittingUnit{unit.word, year};
  }
  return std::nullopt;
}

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
      "{}: column \"{}\": row {} (counted from 0): with time_unit = \"{}\" the time {} is in the year {}, "
      "with "
      "time_unit = \"{}\" in {}: change time_unit, or set relative_time = true if times do not count from "
      "1970",
      batch.file, column.name, batch.first_row + last, unit, *value, year, fitting->unit, fitting->year);
}

}  // namespace hstu
