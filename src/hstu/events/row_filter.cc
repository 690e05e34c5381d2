#include "hstu/events/row_filter.h"

#include <algorithm>
#include <numeric>

#include "hstu/base/contains.h"

namespace hstu {
namespace {

const RawColumn& find(const RawBatch& batch, const std::string& name) {
  return *std::find_if(batch.columns.begin(), batch.columns.end(),
                       [&](const RawColumn& column) { return column.name == name; });
}

template <typename T>
void keep_rows(const std::vector<std::uint8_t>& mask, std::vector<T>& values) {
  if (values.empty()) return;
  std::size_t kept = 0;
  for (std::size_t r = 0; r < mask.size(); ++r) {
    if (mask[r] != 0) values[kept++] = values[r];
  }
  values.resize(kept);
}

std::int64_t count(const std::vector<std::uint8_t>& mask) {
  return std::reduce(mask.begin(), mask.end(), std::int64_t{0});
}

}  // namespace

void DroppedRows::add(const DroppedRows& part) {
  nulls += part.nulls;
  others += part.others;
}

std::vector<std::string> RowFilter::columns() const {
  std::vector<std::string> columns;
  const auto add = [&](const std::string& column) {
    if (!contains(columns, column)) columns.push_back(column);
  };
  std::for_each(schema_.drop_null.begin(), schema_.drop_null.end(), add);
  for (const Condition& condition : schema_.keep) add(condition.column);
  return columns;
}

DroppedRows RowFilter::apply(RawBatch& batch) const {
  DroppedRows dropped;
  batch.places.clear();
  if (!active() || batch.rows == 0) return dropped;
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(batch.rows), 1);
  for (const std::string& name : schema_.drop_null) {
    const std::vector<std::uint8_t>& nulls = find(batch, name).nulls;
    for (std::size_t r = 0; r < nulls.size(); ++r) mask[r] &= static_cast<std::uint8_t>(nulls[r] == 0);
  }
  const std::int64_t with_values = count(mask);
  for (const Condition& condition : schema_.keep)
    keep_matching(condition, find(batch, condition.column), batch.file, mask);
  const std::int64_t kept = count(mask);
  dropped = {.nulls = batch.rows - with_values, .others = with_values - kept};
  if (kept == batch.rows) return dropped;
  for (RawColumn& column : batch.columns) {
    keep_rows(mask, column.integers);
    keep_rows(mask, column.nanoseconds);
    keep_rows(mask, column.reals);
    keep_rows(mask, column.nulls);
  }
  std::vector<std::int64_t> places(mask.size());
  std::iota(places.begin(), places.end(), 0);
  keep_rows(mask, places);
  batch.places = std::move(places);
  batch.rows = kept;
  return dropped;
}

}  // namespace hstu
