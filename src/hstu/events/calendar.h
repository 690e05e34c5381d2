// Notices a wrong time unit of a log.
#pragma once

#include <cstdint>
#include <string_view>

#include "hstu/base/calendar.h"
#include "hstu/columns/column_source.h"

namespace hstu {

// `first` and `last`: the rows of the smallest and the largest time of the column, `seconds` the latter.
// UsageError naming file, column, value and year if that year is not plausible and another unit than `unit`
// would make both so: times that do not count from 1970 begin near 0, which is plausible in no unit.
void check_time_unit(const RawBatch& batch, const RawColumn& column, std::int64_t first, std::int64_t last,
                     std::int64_t seconds, std::string_view unit);

}  // namespace hstu
