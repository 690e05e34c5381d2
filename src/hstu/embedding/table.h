// EmbeddingTable: V nominal rows of D floats. A row exists only after a training lookup.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/embedding/row_keeper.h"
#include "hstu/embedding/row_owners.h"
#include "hstu/embedding/table_place.h"
#include "hstu/rows/placed_row_store.h"
#include "hstu/rows/row_optimizer.h"
#include "hstu/rows/row_store.h"
#include "hstu/tensor/context.h"

namespace hstu {

struct TableConfig {
  std::string name;       // letters, digits, '_', '-' and '.': it names a file of the checkpoint
  std::int64_t rows = 0;  // V: ids are 0 .. V - 1
  std::int64_t dim = 0;   // D
  RowLimits limits = {};
  InitialValue initial = {};
  std::optional<RowOptimizerKind> optimizer = {};  // empty: that of the other tables
  TableRanks ranks = TableRanks::automatic;        // how several ranks share it
  DType dtype = DType::f32;                        // f32 or bf16, of the values
  // Of tables on a GPU: `host`, and `disk` without cache_rows, have a cache for the rows of the largest step
  // there. On the host `device` is `host`.
  TablePlace place = TablePlace::device;
  // > 0: all rows are in host memory, or on the disk, and a cache in the memory of the tables has room for so
  // many.
  std::int64_t cache_rows = 0;
  // Of the disk: rows in a file of a new folder in `disk_folder`, below a cache in host memory for so many.
  std::int64_t host_rows = 0;
  Path disk_folder = {};
};

// Whether a lookup creates missing rows.
enum class RowAccess {
  train,  // creates a missing row, with the value that evaluation read before, unless ids wait for one
  read,   // creates nothing
};

// The initial value of a row (initial_value.h) comes from (seed, table name, id, column). An id outside [0,
// V) selects the null row: it reads as zeros, takes no gradient and is not stored (batching counts such ids
// by feature). Every result is the same for any number of threads and any order of first accesses.
class EmbeddingTable {
 public:
  using Place = RowStore::Place;

  // What one rank, or the only one, has of the table. The rows are in the memory of `where`. Throws
  // UsageError for an invalid name, V or D.
  EmbeddingTable(TableConfig config, RowOptimizer optimizer, std::uint64_t seed,
                 const Context& where = host_context(), const RowOwners& owners = {});

  // slots (n) of `ids` (n), for gather and update. They remain valid when rows are added.
  void find_slots(std::span<const std::int64_t> ids, RowAccess access, std::int64_t* slots);
  // The same of a table with placed(), and its lines (n) of them (PlacedRowStore::lines_of), where rows that
  // are trained are on their way.
  void find_lines(std::span<const std::int64_t> ids, RowAccess access, std::int64_t* slots,
                  std::int64_t* lines);
  std::vector<std::int64_t> slots(std::span<const std::int64_t> ids, RowAccess access) {
    std::vector<std::int64_t> found(ids.size());
    find_slots(ids, access, found.data());
    return found;
  }

  // out (n, D): the rows of `ids` (n) at `slots` (n).
  void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots, float* out) const {
    store_->gather(ids, slots, out);
  }

  // Updates every row at `slots` (n, each once) by its merged gradient (n, D). Throws InternalError if a row
  // occurs twice: its gradients must be summed first (row_gradients.h).
  void update(std::span<const std::int64_t> slots, const float* gradients, double learning_rate);

  const TableConfig& config() const { return config_; }
  const RowOptimizer& optimizer() const { return optimizer_; }
  std::uint64_t key() const { return key_; }  // of the initial values
  std::int64_t state_width() const { return optimizer_.state_width(config_.dim); }
  // Columns of a row, and floats of its state, that are here: all of them, unless ranks share the columns. A
  // row below is then one of width() values.
  std::int64_t width() const { return owners_.columns(owners_.rank, config_.dim); }
  std::int64_t stored_state_width() const { return optimizer_.state_width(width()); }
  std::int64_t rows_alive() const { return store_->rows(); }
  // Memory taken by rows, state, index and waiting ids.
  std::int64_t bytes() const { return store_->bytes() + (keeper_ ? keeper_->bytes() : 0); }
  bool contains(std::int64_t id) const { return store_->contains(id); }

  // For checkpoints: every existing row by ascending id; valid until the table changes.
  std::vector<Place> places_by_id() const { return store_->places_by_id(); }
  // Those that were created, updated or visited after the last begin_changes(); all, before the first one.
  std::vector<Place> changed_by_id() const { return store_->changed_by_id(changes_); }
  void begin_changes() { changes_ = store_->begin_changes(); }
  // values (n, width()) and state (n, stored_state_width()) of the rows at `places` (n); null: not asked for.
  void read(std::span<const Place> places, float* values, float* state) const;

  // Adds rows: ids (n) strictly ascending, without rows so far, whole ones: values (n, D), state (n,
  // state_width); without what other ranks own. Throws Error if ids are out of order or outside [0, V).
  void restore(std::span<const std::int64_t> ids, const float* values, const float* state);

  // Of a table with limits, else null. The end of a step is in row_visits.h.
  RowKeeper* keeper() { return keeper_.get(); }
  const RowKeeper* keeper() const { return keeper_.get(); }
  // What a checkpoint has of a table with limits beside its rows: of the rows at `places` (n), seen (n) and
  // scores (n).
  void read_history(std::span<const Place> places, std::int64_t* seen, std::int64_t* scores) const;
  // After restore() of the same ids. Without the rows and the waiting ids that other ranks own.
  void restore_history(const RowKeeper::State& state, std::span<const std::int64_t> ids,
                       std::span<const std::int64_t> seen, std::span<const std::int64_t> scores,
                       std::span<const std::int64_t> waiting_ids,
                       std::span<const std::int64_t> waiting_counts);

  const RowOwners& owners() const { return owners_; }

  RowStore& store() { return *store_; }
  // The store of a table whose rows the host places on a device (placed_row_store.h); else null.
  PlacedRowStore* placed() { return placed_; }
  const PlacedRowStore* placed() const { return placed_; }

 private:
  bool creates(RowAccess access) const {
    return access == RowAccess::train && (keeper_ == nullptr || keeper_->creates_at_lookup());
  }

  TableConfig config_;
  RowOptimizer optimizer_;
  std::uint64_t key_;
  RowOwners owners_;
  std::int64_t changes_ = -1;  // of RowStore::begin_changes()
  std::unique_ptr<RowStore> store_;
  PlacedRowStore* placed_ = nullptr;   // store_, if it is one
  std::unique_ptr<RowKeeper> keeper_;  // of a table with limits
};

}  // namespace hstu
