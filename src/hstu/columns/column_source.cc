#include "hstu/columns/column_source.h"

#include <algorithm>
#include <numeric>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/columns/csv_source.h"
#include "hstu/columns/movielens_source.h"
#include "hstu/columns/parquet_source.h"

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

std::unique_ptr<ColumnSource> open_columns(const Path& file, std::span<const std::string> columns,
                                           const ReadOptions& options) {
  if (!std::filesystem::exists(file)) fail_usage("{}: the file does not exist", file.string());
  if (options.csv && is_csv_file(file)) return open_csv(file, columns, *options.csv, options.nulls);
  if (!options.csv && is_movielens_file(file)) return open_movielens(file, columns, options);
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
