// How the ranks of a group share the tables of a model: a function of the configuration and the number of
// ranks, so that every rank decides the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/embedding/table.h"

namespace hstu {

// What TableRanks::automatic chooses: a copy on every rank if the gradients of all rows with their ids, sent
// to all other ranks, are at most this many bytes and nothing limits the table; else split.
inline constexpr std::int64_t kCopiedBytes = std::int64_t{1} << 20;

// The tables as rank `rank` of `ranks` sees them. Tables that are on one rank each (TableRanks::table) go,
// the largest first, to the rank with the fewest values of such tables so far. Throws UsageError for a table
// that cannot be divided as its configuration says; `optimizer`: of the tables that name none.
std::vector<RowOwners> divide_tables(std::span<const TableConfig> tables, RowOptimizerKind optimizer,
                                     int rank, int ranks);

}  // namespace hstu
