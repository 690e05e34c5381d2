// CSV files, plain or compressed, as typed columns, through Arrow.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hstu/columns/column_source.h"

namespace hstu {

// The names in the first line, or those of `format`. Error if the file is not whole.
std::vector<std::string> list_csv_columns(const Path& file, const CsvFormat& format);

// Reads RFC 4180: fields may be quoted, and then contain delimiters, line breaks and doubled quotes. The
// types follow from `format` alone, never from the values. A field without quotes that is empty or one of
// `nulls` is null. Throws UsageError for a missing column; Error naming the line of a row with too few or too
// many fields, the row of a value that is not of the column's type, a row longer than the memory of a reader
// allows, and a truncated file.
std::unique_ptr<ColumnSource> open_csv(const Path& file, std::span<const std::string> columns,
                                       const CsvFormat& format, std::span<const std::string> nulls = {});

}  // namespace hstu
