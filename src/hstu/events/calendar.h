// Years of times, by which a wrong time unit is noticed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hstu/columns/column_source.h"

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

// `first` and `last`: the rows of the smallest and the largest time of the column, `seconds` the latter.
// UsageError naming file, column, value and year if that year is not plausible and another unit than `unit`
// would make both so: times that do not count from 1970 begin near 0, which is plausible in no unit.
void check_time_unit(const RawBatch& batch, const RawColumn& column, std::int64_t first, std::int64_t last,
                     std::int64_t seconds, std::string_view unit);

}  // namespace hstu
