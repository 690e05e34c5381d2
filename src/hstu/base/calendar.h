// Years of times, by which a wrong time unit is noticed, and times as texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hstu {

// The year of a time in seconds since 1970.
std::int64_t calendar_year(std::int64_t seconds);

// "2023-11-14", of a time whose year is plausible.
std::string calendar_date(std::int64_t seconds);

// Logs are from the years 1990 to 2100.
bool is_plausible_year(std::int64_t year);

// The unit ("s", "ms", "us", "ns") in which `value` is a time of the years 1990 to 2100, and its year;
// nothing if there is none. No value has two.
struct FittingUnit {
  std::string_view unit;
  std::int64_t year = 0;
};
std::optional<FittingUnit> fitting_unit(std::int64_t value);

// The unit in which `value` is a time of these years, if that is not `unit`: a wrong unit gives other
// histories and other scores, and nothing else would be noticed.
std::optional<FittingUnit> other_unit(std::int64_t value, std::string_view unit);

// A time: seconds since 1970, rounded down, and the rest.
struct CalendarTime {
  std::int64_t seconds = 0, nanoseconds = 0;  // of the second, 0 to 999,999,999
};

// A text in ISO 8601 of the years 0 to 9999: "2024-05-01", "2024-05-01T12:30:00.250+02:00", also without
// seconds or minutes, with a blank instead of the T, and with a blank before the offset; UTC without an
// offset, or with "UTC" or "GMT", as databases write it. Digits behind the ninth of a fraction are cut.
// Nothing for other texts.
std::optional<CalendarTime> parse_iso_time(std::string_view text);

}  // namespace hstu
