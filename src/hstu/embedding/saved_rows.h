// The rows of a table in the order of a checkpoint: by ascending id, those of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "hstu/embedding/table_set.h"

namespace hstu {

class SavedRows {
 public:
  virtual ~SavedRows() = default;
  virtual std::span<const std::int64_t> ids() const = 0;  // (n) ascending
  // The values (count, D), or the optimizer's state (count, state_width), of rows `first` .. `first + count`
  // - 1.
  virtual void read(std::size_t first, std::size_t count, bool state, float* out) = 0;
  // Of a table with limits: for each of these rows, the last step that saw it and its score, (count, 2).
  virtual void read_history(std::size_t first, std::size_t count, std::int64_t* out) = 0;
  // Of a table with limits: the waiting ids, ascending, and the counts.
  virtual WaitingIds::List waiting() = 0;
  virtual RowCounts counts() = 0;
};

// Of table t. The table must not change while it is read. Split tables: rank 0 calls this, and every other
// rank is in serve_rows(), which ends with the ServedRows of rank 0.
std::unique_ptr<SavedRows> saved_rows(const TableSet& tables, std::size_t t);
void serve_rows(const TableSet& tables);

// All ranks call it together.
RowCounts sum_over_ranks(RowCounts counts, Communicator& comm);

// Ends serve_rows() on the other ranks when it is destroyed, also after an error.
class ServedRows {
 public:
  explicit ServedRows(const TableSet& tables) : tables_(tables) {}
  ~ServedRows();
  ServedRows(const ServedRows&) = delete;
  ServedRows& operator=(const ServedRows&) = delete;

 private:
  const TableSet& tables_;
};

}  // namespace hstu
