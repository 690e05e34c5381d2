#include "hstu/columns/column_source.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "hstu/base/contains.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/csv_source.h"
#include "hstu/columns/file_columns.h"
#include "hstu/columns/file_format.h"
#include "hstu/columns/folder_columns.h"
#include "hstu/columns/movielens_source.h"
#include "hstu/columns/parquet_source.h"
#include "hstu/columns/sequence_source.h"

namespace hstu {

std::string place_of(const RawBatch& batch, const RawColumn& column, std::int64_t r) {
  const std::int64_t row =
      batch.first_row + (batch.places.empty() ? r : batch.places[static_cast<std::size_t>(r)]);
  const std::string place = fmt::format("{}: column \"{}\"", batch.file, column.name);
  return batch.line_of ? fmt::format("{}: line {}", place, batch.line_of(row))
                       : fmt::format("{}: row {} (counted from 0)", place, row);
}

std::int64_t ColumnSource::total_rows() const {
  const std::vector<std::int64_t> rows = groups();
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

namespace {

std::unique_ptr<ColumnSource> open_own(const Path& file, std::span<const std::string> columns,
                                       const ReadOptions& options) {
  if (format_of(file) != FileFormat::kParquet) return open_csv(file, columns, *options.csv, options.nulls);
  return open_parquet(file, columns, options);
}

// A column of the file comes before a folder of its name.
std::unique_ptr<ColumnSource> open_below_folders(const Path& file, std::span<const std::string> columns,
                                                 const ReadOptions& options) {
  auto values = folder_values(file);
  std::erase_if(values, [&](const auto& value) { return !contains(columns, value.first); });
  if (values.empty()) return open_own(file, columns, options);
  std::vector<std::string> read;
  const std::vector<FileColumn> known = list_columns(file, *options.csv);
  for (const FileColumn& column : known) values.erase(column.name);
  std::copy_if(columns.begin(), columns.end(), std::back_inserter(read),
               [&](const std::string& column) { return !values.contains(column); });
  if (read.empty()) {  // the rows must be counted
    const auto any =
        std::find_if(known.begin(), known.end(), [](const FileColumn& column) { return column.readable; });
    if (any != known.end()) read.push_back(any->name);
  }
  return with_folder_columns(file, columns, options, values, open_own(file, read, options));
}

}  // namespace

std::unique_ptr<ColumnSource> open_columns(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options) {
  if (!std::filesystem::exists(file)) fail_usage("{}: the file does not exist", file.string());
  if (options.sequences) return open_sequences(file, columns, *options.sequences, options.batch_rows);
  if (options.csv) return open_below_folders(file, columns, options);
  if (is_movielens_file(file)) return open_movielens(file, columns, options);
  return open_parquet(file, columns, options);
}

std::vector<std::size_t> find_columns(const Path& file, std::span<const std::string> wanted,
                                      std::span<const std::string> available) {
  std::vector<std::size_t> positions;
  for (const std::string& name : wanted) {
    const auto found = std::find(available.begin(), available.end(), name);
    if (found == available.end()) {
      fail_usage("{}: the column \"{}\" does not exist{}", file.string(), name, suggestion(name, available));
    }
    positions.push_back(static_cast<std::size_t>(found - available.begin()));
  }
  return positions;
}

}  // namespace hstu
