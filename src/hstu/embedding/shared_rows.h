// Rows of tables that ranks share: to the ranks that read them, and their gradients to the ranks that have
// them. All ranks call these together. All tables travel together, however each is shared: an exchange of
// sizes and one of data for the ids, one for the rows, two for the gradients.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/embedding/table_set.h"

namespace hstu {

// Rows of one table by id: values (n, D), or (n, width()) of what a rank has.
struct RowsById {
  std::vector<std::int64_t> ids;  // (n)
  std::vector<float> values;
};

// The rows of ids[t] (n_t) i64 in host memory, each once: (n_t, D) f32, one tensor per table, as the ranks
// that have them have them. RowAccess::train creates missing rows there.
std::vector<Tensor> fetch_rows(TableSet& tables, std::span<const Tensor> ids, RowAccess access);

// Sends every row to the ranks that have it. Gives the rows of which this rank has something, of each table
// those of rank 0 first; an id occurs once for each rank that sent it.
std::vector<RowsById> send_to_owners(const TableSet& tables, const std::vector<RowsById>& mine);

}  // namespace hstu
