// The lookup of one batch's rows of tables that ranks share, in parts that need not follow each other at once
// (ranks.pipeline).
#pragma once

#include <memory>
#include <vector>

#include "hstu/embedding/table.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

struct SentRows;  // device_lookup.h

struct FetchedRows {
  std::vector<Tensor> rows;              // (n_t, D) f32, one per table, in the order of the batch's ids
  std::shared_ptr<const SentRows> sent;  // of rows in the memory of GPUs
};

// Exists when the ranks that have the rows know which ones this rank reads. All ranks call the same functions
// in the same order.
class RowLookup {
 public:
  virtual ~RowLookup() = default;

  // Their owners bring the rows into caches, if there are any, where they have room.
  virtual void prefetch() = 0;
  // Brings the rows as they are now, and creates none.
  virtual void read_ahead() = 0;
  // After read_ahead() and the last change of rows before finish(), which waits for a GPU without it.
  virtual void find_changed() = 0;
  // The rows as they are now, whose owners create missing ones for RowAccess::train. After read_ahead() those
  // alone travel that have changed since. Once.
  virtual FetchedRows finish(RowAccess access) = 0;
};

}  // namespace hstu
