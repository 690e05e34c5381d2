// Parquet files as typed columns, through Arrow. The only reader that knows Arrow.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hstu/events/column_source.h"

namespace hstu {

// Reads integers of any width, booleans, floats, strings (plain or dictionary) and timestamps, nullable or
// not. Throws UsageError for a missing column or a type that is none of these, Error for a file that is torn.
std::unique_ptr<ColumnSource> open_parquet(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options);

// Threads that decode columns, where ReadOptions ask for several.
void set_parquet_threads(int threads);

}  // namespace hstu
