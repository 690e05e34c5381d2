// The rows of a table in the order of a checkpoint: by ascending id, those of all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "hstu/embedding/table_set.h"

namespace hstu {

class SavedRows {
 public:
  virtual ~SavedRows() = default;
  virtual std::span<const std::int64_t> ids() const = 0;  // (n) ascending
  // Of every row, also where ids() are those of changed rows.
  virtual std::vector<std::int64_t> all_ids() = 0;
  // The values (count, D), or the optimizer's state (count, state_width), of rows `first` .. `first + count`
  // - 1.
  virtual void read(std::size_t first, std::size_t count, bool state, float* out) = 0;
  // Of a table with limits: for each of these rows, the last step that saw it and its score, (count, 2).
  virtual void read_history(std::size_t first, std::size_t count, std::int64_t* out) = 0;
  // Of a table with limits: the waiting ids, ascending, and the counts.
  virtual WaitingIds::List waiting() = 0;
  virtual RowCounts counts() = 0;
};

// Of table t: all rows, or those of EmbeddingTable::changed_by_id(). The table must not change while it is
// read. Tables whose rows move: rank 0 calls this, and every other rank is in serve_rows(), which ends with
// the ServedRows of rank 0.
enum class RowsToSave : std::int64_t { all, changed };
std::unique_ptr<SavedRows> saved_rows(const TableSet& tables, std::size_t t, RowsToSave which);
void serve_rows(TableSet& tables);

// Of a table with limits. All ranks call it together.
RowCounts counts_of_all_ranks(const EmbeddingTable& table, Communicator& comm);

// Ends serve_rows() on the other ranks when it is destroyed, also after an error.
class ServedRows {
 public:
  explicit ServedRows(TableSet& tables) : tables_(tables) {}
  ~ServedRows();
  // TableSet::begin_changes() on all ranks: every row has been saved.
  void begin_changes() { begins_changes_ = true; }
  ServedRows(const ServedRows&) = delete;
  ServedRows& operator=(const ServedRows&) = delete;

 private:
  TableSet& tables_;
  bool begins_changes_ = false;
};

}  // namespace hstu
