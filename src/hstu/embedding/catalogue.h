// Catalogue: the rows of a list of ids of one table, such as all items, which are read in blocks and whose
// gradient is a tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/embedding/table_set.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

class Catalogue {
 public:
  // `ids`: ascending, in [0, V), the same on all ranks. RowAccess::train creates their rows. Throws
  // UsageError for a table by column, with limits, or with a cache that has no room for the list. `tables`
  // must outlive it.
  Catalogue(TableSet& tables, std::size_t table, const std::vector<std::int64_t>& ids, RowAccess access);

  // What this rank has of the list: of a table whose rows are split, the ids of its rows; of one that is a
  // copy on every rank, an equal slice; of one on one rank, all or nothing.
  std::int64_t size() const { return host_ids_.size(); }
  const std::int64_t* ids() const { return host_ids_.data<std::int64_t>(); }  // (size), ascending
  const Tensor& device_ids() const { return ids_; }  // the same on the device of the tables
  std::size_t table() const { return table_; }
  // (size) of ids() in the list of all ranks; null: 0, 1, ...
  const std::int64_t* places() const { return places_.empty() ? nullptr : places_.data(); }

  // block (n, E) f32 or bf16, on the device of the tables: the rows of ids first .. first + n - 1 of this
  // rank, as the tables' stream finds them; bf16: to the nearest.
  void read(std::int64_t first, Tensor& block) const;

  // (size, E) f32 on the device of the tables: the gradient of this rank's rows in a step, which begins as
  // zeros. What adds to it works on the tables' stream or is ordered before RowGradients::add(). It is the
  // sum over the batches of all ranks where rows are split, and of a slice too: no other rank has a part.
  Tensor gradient();
  // The gradient, with none from then on.
  Tensor take_gradient();

  // The rows of all of this rank's ids in a step. RowSelection has nothing of other tables.
  RowSelection select(RowAccess access) const { return select(0, size(), access); }

 private:
  RowSelection select(std::int64_t begin, std::int64_t end, RowAccess access) const;

  TableSet& tables_;
  std::size_t table_;
  std::vector<std::int64_t> places_;
  Tensor host_ids_, ids_;  // (size) i64, in host memory and on the device of the tables
  Tensor gradient_;
};

}  // namespace hstu
