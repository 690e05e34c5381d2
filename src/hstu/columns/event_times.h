// Times of events from any column that can hold them.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/columns/column_source.h"

namespace hstu {

// Of numbers in a time column; timestamps, dates and ISO 8601 texts have their own.
enum class TimeUnit { kSeconds, kMilliseconds, kMicroseconds, kNanoseconds };

// Times in whole seconds since 1970, rounded down, and the rest.
struct EventTimes {
  std::vector<std::int64_t> seconds;      // (R)
  std::vector<std::int64_t> nanoseconds;  // (R) 0 to 999,999,999; empty: all 0
};

// The times of a column of R rows: timestamps and dates as they are; numbers, also as texts, in `unit`; texts
// in ISO 8601 ("2024-05-01", "2024-05-01T12:30:00.250+02:00", also with a blank instead of the T and before
// the offset; UTC without an offset, or with " UTC" or " GMT") of the years 0 to 9999. UsageError for a
// column of another type, Error naming the row whose text is no time.
EventTimes times_of(const RawBatch& batch, const RawColumn& column, TimeUnit unit);

// Seconds and nanoseconds as one number, for comparisons; times beyond the years 1677 to 2262 are limited.
std::int64_t in_nanoseconds(std::int64_t seconds, std::int64_t nanoseconds);

}  // namespace hstu
