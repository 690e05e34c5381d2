#include "hstu/embedding/table_division.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {
namespace {

TableRanks chosen(const TableConfig& table, int ranks) {
  if (table.ranks != TableRanks::automatic) return table.ranks;
  // What a GPU keeps in host memory, or on a disk, has no copies.
  if (table.limits.any() || table.cache_rows > 0 || table.place != TableTier::device)
    return TableRanks::split;
  const double row_bytes = sizeof(std::int64_t) + sizeof(float) * static_cast<double>(table.dim);
  const bool is_small = (ranks - 1) * static_cast<double>(table.rows) * row_bytes <= kCopiedBytes;
  return is_small ? TableRanks::copy : TableRanks::split;
}

void check_columns(const TableConfig& table, RowOptimizerKind optimizer, int ranks) {
  if (table.ranks != TableRanks::column) return;
  if (table.dim < ranks)
    fail_usage("tables.{}.ranks = \"column\": {} columns are too few for {} ranks: set \"split\"", table.name,
               table.dim, ranks);
  if (table.optimizer.value_or(optimizer) == RowOptimizerKind::rowwise_adagrad)
    fail_usage(
        "tables.{0}.ranks = \"column\": rowwise_adagrad needs the gradient of the whole row: set "
        "tables.{0}.optimizer = \"adagrad\", or ranks = \"split\"",
        table.name);
}

}  // namespace

std::vector<RowOwners> divide_tables(std::span<const TableConfig> tables, RowOptimizerKind optimizer,
                                     int rank, int ranks) {
  std::vector<RowOwners> owners;
  std::vector<std::size_t> on_one_rank;
  for (const TableConfig& table : tables) {
    if (ranks > 1) check_columns(table, optimizer, ranks);
    owners.push_back({.rank = rank, .ranks = ranks, .form = chosen(table, ranks)});
    if (owners.back().form == TableRanks::table) on_one_rank.push_back(owners.size() - 1);
  }
  const auto values = [&](std::size_t t) {
    return static_cast<double>(tables[t].rows) * static_cast<double>(tables[t].dim);
  };
  std::stable_sort(on_one_rank.begin(), on_one_rank.end(),
                   [&](std::size_t a, std::size_t b) { return values(a) > values(b); });
  std::vector<double> load(static_cast<std::size_t>(ranks), 0);
  for (const std::size_t t : on_one_rank) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += values(t);
    owners[t].home = static_cast<int>(least - load.begin());
  }
  return owners;
}

}  // namespace hstu
