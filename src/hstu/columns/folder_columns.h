// Columns whose values are the names of folders, as Hive and Spark write them: day=2024-05-01/part-0.parquet.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "hstu/columns/column_source.h"

namespace hstu {

// The values of the folders KEY=VALUE in a path, by key; no value: Hive's name for null. %3A and the like are
// decoded.
std::map<std::string, std::optional<std::string>> folder_values(const Path& file);

// Adds columns of folders to a file: `columns` are those of the result, in order; `rows` reads those of them
// that are not among `values`, in order, or any one column if there are none. They are texts, or integers or
// numbers if the options' format of CSV lists them. Error naming the file for a value that is no such number.
std::unique_ptr<ColumnSource> with_folder_columns(
    const Path& file, std::span<const std::string> columns, const ReadOptions& options,
    const std::map<std::string, std::optional<std::string>>& values, std::unique_ptr<ColumnSource> rows);

}  // namespace hstu
