#include "hstu/columns/event_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "hstu/base/calendar.h"
#include "hstu/base/error.h"
#include "hstu/base/floor_divide.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::int64_t kNanoseconds = 1'000'000'000;

using Time = CalendarTime;

std::int64_t units_in_a_second(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kSeconds:
      return 1;
    case TimeUnit::kMilliseconds:
      return 1'000;
    case TimeUnit::kMicroseconds:
      return 1'000'000;
    case TimeUnit::kNanoseconds:
      return kNanoseconds;
  }
  return 1;
}

Time time_of(std::int64_t value, std::int64_t per_second) {
  const std::int64_t seconds = floor_divide(value, per_second);
  return {seconds, (value - seconds * per_second) * (kNanoseconds / per_second)};
}

std::optional<Time> time_of(double value, std::int64_t per_second) {
  if (!(std::abs(value) < kLargestExact)) return std::nullopt;
  const double whole = std::floor(value);
  Time time = time_of(static_cast<std::int64_t>(whole), per_second);
  const std::int64_t step = kNanoseconds / per_second;
  const double rest = (value - whole) * static_cast<double>(step);
  time.nanoseconds += std::min(static_cast<std::int64_t>(rest), step - 1);
  return time;
}

std::optional<Time> time_of(std::string_view text, std::int64_t per_second) {
  if (const auto whole = parse_number<std::int64_t>(text)) return time_of(*whole, per_second);
  if (const auto real = parse_number<double>(text)) return time_of(*real, per_second);
  return parse_iso_time(text);
}

class TimesBuilder {
 public:
  explicit TimesBuilder(std::size_t rows) { times_.seconds.reserve(rows); }

  void add(const Time& time) {
    if (time.nanoseconds != 0) {
      times_.nanoseconds.resize(times_.seconds.size());
      times_.nanoseconds.push_back(time.nanoseconds);
    }
    times_.seconds.push_back(time.seconds);
  }

  EventTimes take() {
    if (!times_.nanoseconds.empty()) times_.nanoseconds.resize(times_.seconds.size());
    return std::move(times_);
  }

 private:
  EventTimes times_;
};

EventTimes times_of_integers(const std::vector<std::int64_t>& values, std::int64_t per_second) {
  if (per_second == 1) return {.seconds = values, .nanoseconds = {}};
  TimesBuilder times(values.size());
  for (const std::int64_t value : values) times.add(time_of(value, per_second));
  return times.take();
}

EventTimes times_of_reals(const RawBatch& batch, const RawColumn& column, std::int64_t per_second) {
  TimesBuilder times(column.reals.size());
  for (std::size_t r = 0; r < column.reals.size(); ++r) {
    const double value = column.reals[r];
    const auto time = time_of(value, per_second);
    if (!time || std::abs(value) >= column.exact)  // floats of our days are 128 seconds apart
      fail("{}: expected a time below 2^{}, from which this type rounds, found {}",
           place_of(batch, column, static_cast<std::int64_t>(r)), std::ilogb(column.exact), value);
    times.add(*time);
  }
  return times.take();
}

EventTimes times_of_texts(const RawBatch& batch, const RawColumn& column, std::int64_t per_second) {
  std::vector<std::optional<Time>> known;  // of the distinct texts
  known.reserve(column.texts.size());
  for (const std::string& text : column.texts) known.push_back(time_of(text, per_second));
  TimesBuilder times(column.integers.size());
  for (std::size_t r = 0; r < column.integers.size(); ++r) {
    const auto code = static_cast<std::size_t>(column.integers[r]);
    if (column.integers[r] < 0)
      fail("{}: expected a time, found null", place_of(batch, column, static_cast<std::int64_t>(r)));
    if (!known[code])
      fail("{}: expected a time, a number or ISO 8601 such as 2024-05-01T12:30:00.250Z, found \"{}\"",
           place_of(batch, column, static_cast<std::int64_t>(r)), column.texts[code]);
    times.add(*known[code]);
  }
  return times.take();
}

}  // namespace

EventTimes times_of(const RawBatch& batch, const RawColumn& column, TimeUnit unit) {
  const std::int64_t per_second = units_in_a_second(unit);
  switch (column.kind) {
    case RawColumn::Kind::kSeconds:
      return {.seconds = column.integers, .nanoseconds = column.nanoseconds};
    case RawColumn::Kind::kInteger:
      return times_of_integers(column.integers, per_second);
    case RawColumn::Kind::kReal:
      return times_of_reals(batch, column, per_second);
    case RawColumn::Kind::kText:
      break;
  }
  return times_of_texts(batch, column, per_second);
}

std::int64_t in_nanoseconds(std::int64_t seconds, std::int64_t nanoseconds) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (seconds >= Limits::max() / kNanoseconds) return Limits::max();
  if (seconds <= Limits::min() / kNanoseconds) return Limits::min();
  return seconds * kNanoseconds + nanoseconds;
}

}  // namespace hstu
