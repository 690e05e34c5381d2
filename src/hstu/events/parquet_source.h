// Parquet files as typed columns, through Arrow. The only reader that uses Arrow.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hstu/events/column_source.h"

namespace hstu {

// Reads integers of any width, booleans, floats, strings (plain or dictionary) and timestamps, nullable or
// not. Throws UsageError for a missing column or any other type, Error for a truncated file.
std::unique_ptr<ColumnSource> open_parquet(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options);

// Number of threads that decode columns if ReadOptions::threads is set.
void set_parquet_threads(int threads);

}  // namespace hstu
