// Parquet files as typed columns, through Arrow. csv_source.h reads CSV.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "hstu/columns/column_source.h"

namespace hstu {

// Reads integers of any width, decimals, booleans, floats, strings (plain or dictionary, also without the
// mark that they are UTF-8), UUIDs as texts, dates and timestamps (INT96 in microseconds), columns of nulls
// without a type, nullable or not, and the first elements of lists of these in the columns that the options
// name. Throws UsageError for a missing column or any other type, Error for a truncated file.
std::unique_ptr<ColumnSource> open_parquet(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options);

// Bytes that all decoding together may take; a file that needs more is an Error. Call it before the first
// file is opened; without it there is no limit.
void set_parquet_memory(std::int64_t bytes);

// Number of threads that decode columns if ReadOptions::threads is set.
void set_parquet_threads(int threads);

}  // namespace hstu
