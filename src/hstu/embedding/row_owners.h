// Which rank of a group has a row of a table, or a part of it.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/base/random.h"

namespace hstu {

// How ranks share a table (docs/ranks.md).
enum class TableRanks {
  automatic,  // as table_division.h decides
  split,      // each row is on one rank, given by a hash of its id
  column,     // every rank has some columns of every row
  table,      // all rows are on one rank
  copy,       // every rank has every row
};
inline constexpr Choice<TableRanks> kTableRanks[] = {{"auto", TableRanks::automatic},
                                                     {"split", TableRanks::split},
                                                     {"column", TableRanks::column},
                                                     {"table", TableRanks::table},
                                                     {"copy", TableRanks::copy}};

// A table as one rank of a group sees it. One rank has everything.
struct RowOwners {
  int rank = 0, ranks = 1;
  TableRanks form = TableRanks::split;  // not automatic
  int home = 0;                         // TableRanks::table: the rank that has the rows

  // A lookup reads rows that other ranks have.
  bool is_distributed() const { return ranks > 1 && form != TableRanks::copy; }
  bool by_column() const { return ranks > 1 && form == TableRanks::column; }
  // Each row is on one rank. Otherwise every rank knows the same ids.
  bool by_row() const { return ranks > 1 && (form == TableRanks::split || form == TableRanks::table); }

  // by_row(): the rank that has the row. The hash is not that of the tables' own index, which would otherwise
  // fill every ranks-th of its places.
  int owner(std::int64_t id) const {
    constexpr std::uint64_t kKey = 0x9E6C63D0876A9A47u;
    if (form == TableRanks::table) return home;
    return static_cast<int>(mix64(static_cast<std::uint64_t>(id) ^ kKey) % static_cast<std::uint64_t>(ranks));
  }
  bool owns(std::int64_t id) const { return !by_row() || owner(id) == rank; }
  // Of what all ranks know alike, one rank reports.
  bool reports() const { return by_row() || rank == 0; }

  // The columns of a row of `dim` values that rank r has.
  std::int64_t first_column(int r, std::int64_t dim) const { return by_column() ? dim * r / ranks : 0; }
  std::int64_t columns(int r, std::int64_t dim) const {
    return by_column() ? dim * (r + 1) / ranks - first_column(r, dim) : dim;
  }
  std::int64_t most_columns(std::int64_t dim) const { return columns(ranks - 1, dim); }  // of any rank
};

}  // namespace hstu
