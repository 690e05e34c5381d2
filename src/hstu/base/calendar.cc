#include "hstu/base/calendar.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "hstu/base/floor_divide.h"

namespace hstu {
namespace {

constexpr std::int64_t kFirstYear = 1990, kLastYear = 2100;
constexpr std::int64_t kDay = 86'400, kHour = 3'600, kMinute = 60, kBillion = 1'000'000'000;

struct Unit {
  std::string_view word;
  std::int64_t per_second;
};
constexpr Unit kTimeUnits[] = {{"s", 1}, {"ms", 1'000}, {"us", 1'000'000}, {"ns", 1'000'000'000}};

// Takes pieces from the front of a text.
class Pieces {
 public:
  explicit Pieces(std::string_view text) : rest_(text) {}

  // `digits` digits as a number; fails for anything else.
  int number(std::size_t digits) {
    int value = 0;
    failed_ = failed_ || rest_.size() < digits;
    for (std::size_t i = 0; i < digits && !failed_; ++i) {
      failed_ = rest_[i] < '0' || rest_[i] > '9';
      value = 10 * value + (rest_[i] - '0');
    }
    if (!failed_) rest_.remove_prefix(digits);
    return failed_ ? 0 : value;
  }
  bool take(char c) {
    if (failed_ || !rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) { failed_ = !take(c) || failed_; }
  bool take_word(std::string_view word) {
    if (failed_ || !rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // The digits of a fraction, at least one, in billionths.
  std::int64_t billionths() {
    const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    failed_ = failed_ || digits == 0;
    std::int64_t value = 0, unit = kBillion / 10;
    for (std::size_t i = 0; i < digits; ++i, unit /= 10) value += (rest_[i] - '0') * unit;
    rest_.remove_prefix(digits);
    return value;
  }
  void expect_that(bool condition) { failed_ = failed_ || !condition; }
  bool ended() const { return rest_.empty(); }
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// "12", "12:30", "12:30:15" or "12:30:15.250".
CalendarTime time_of_day(Pieces& text) {
  const int hour = text.number(2);
  const int minute = text.take(':') ? text.number(2) : -1;
  const int second = minute >= 0 && text.take(':') ? text.number(2) : -1;
  CalendarTime time;
  if (second >= 0 && text.take('.')) time.nanoseconds = text.billionths();
  text.expect_that(hour < 24 && minute < 60 && second < 60);
  time.seconds = hour * kHour + std::max(minute, 0) * kMinute + std::max(second, 0);
  return time;
}

// "Z", "UTC", "GMT", "+02", "+0200" or "-02:00", also behind a blank; or nothing.
std::int64_t offset_from_utc(Pieces& text) {
  if (text.ended()) return 0;
  text.take(' ');
  if (text.take('Z') || text.take_word("UTC") || text.take_word("GMT")) return 0;
  const bool west = text.take('-');
  if (!west) text.expect('+');
  const int hour = text.number(2);
  const int minute = text.take(':') || !text.ended() ? text.number(2) : 0;
  text.expect_that(hour < 24 && minute < 60);
  return (west ? -1 : 1) * (hour * kHour + minute * kMinute);
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
  for (const Unit& unit : kTimeUnits) {
    const std::int64_t year = calendar_year(floor_divide(value, unit.per_second));
    if (is_plausible_year(year)) return FittingUnit{unit.word, year};
  }
  return std::nullopt;
}

std::optional<FittingUnit> other_unit(std::int64_t value, std::string_view unit) {
  const std::optional<FittingUnit> fitting = fitting_unit(value);
  return fitting && fitting->unit != unit ? fitting : std::nullopt;
}

std::optional<CalendarTime> parse_iso_time(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  if (text.size() > kLongest) return std::nullopt;
  Pieces pieces(text);
  const int year = pieces.number(4);
  pieces.expect('-');
  const int month = pieces.number(2);
  pieces.expect('-');
  const int day = pieces.number(2);
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  CalendarTime time;
  if (pieces.take('T') || pieces.take(' ')) {
    time = time_of_day(pieces);
    time.seconds -= offset_from_utc(pieces);
  }
  if (!pieces.complete() || !date.ok()) return std::nullopt;
  time.seconds += std::chrono::sys_days{date}.time_since_epoch().count() * kDay;
  return time;
}

}  // namespace hstu
