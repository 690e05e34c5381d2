// EmbeddingTable: V nominal rows of D floats. A row exists only after a training lookup.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/embedding/row_limiter.h"
#include "hstu/embedding/table_spec.h"
#include "hstu/rows/placement.h"
#include "hstu/tensor/context.h"

namespace hstu {

// The initial value of a row (initial_value.h) comes from (seed, table name, id, column). An id outside [0,
// V) selects the null row: it reads as zeros, takes no gradient and is not stored (batching counts such ids
// by feature). Every result is the same for any number of threads and any order of first accesses.
class EmbeddingTable {
 public:
  using Place = RowPlace;

  // Table `number` of a placement.
  EmbeddingTable(std::shared_ptr<Placement> placement, std::size_t number, TableSpec spec,
                 const Context& where);
  // Alone. The rows are in the memory of `where`. Throws UsageError for an invalid name, V or D.
  EmbeddingTable(const TableConfig& config, const RowOptimizer& optimizer, std::uint64_t seed,
                 const Context& where = host_context(), const RowOwners& owners = {});

  // The rows of `ids` (n, each once), for gather and update until the end of the step.
  Handles select(std::span<const std::int64_t> ids, RowAccess access);
  // (n, width()) f32, on the device of the rows: the selected rows.
  Tensor gather(const Handles& selected) const;
  void gather(const Handles& selected, Tensor& rows) const;
  // Updates every selected row by its merged gradient (n, width()) f32, there. Throws InternalError if a row
  // occurs twice: its gradients must be summed first (row_gradients.h).
  void update(const Handles& selected, const Tensor& gradients, const RowUpdate& update);

  const Context& context() const { return where_; }  // of the rows
  const TableConfig& config() const { return spec_.config; }
  const RowOptimizer& optimizer() const { return spec_.optimizer; }
  const RowOwners& owners() const { return spec_.owners; }
  std::uint64_t key() const { return spec_.placed.shape.key; }  // of the initial values
  std::int64_t state_width() const { return optimizer().state_width(config().dim); }
  // Columns of a row, and floats of its state, that are here: all of them, unless ranks share the columns. A
  // row below is then one of width() values.
  std::int64_t width() const { return spec_.placed.shape.dim; }
  std::int64_t stored_state_width() const { return spec_.placed.shape.state_width; }
  std::int64_t rows_alive() const { return rows_.rows(); }
  // Memory taken by rows, state, index and waiting ids.
  std::int64_t bytes() const;
  bool contains(std::int64_t id) const { return rows_.contains(id); }
  // TableIds::host_ids are needed: the host finds the rows of the table.
  bool needs_host_ids() const { return placement_->needs_host_ids(); }
  const CacheSize& cache_size() const { return spec_.placed.tiers.cache; }
  std::optional<CacheCounts> cache_counts() const { return placement_->figures(number_).cache; }

  // For checkpoints: every existing row by ascending id; valid until the table changes.
  std::vector<Place> places_by_id() const { return rows_.places_by_id(); }
  // Those that were created, updated or visited after the last begin_changes(); all, before the first one.
  std::vector<Place> changed_by_id() const { return rows_.changed_by_id(changes_); }
  void begin_changes() { changes_ = rows_.begin_changes(); }
  // values (n, width()) and state (n, stored_state_width()) of the rows at `places` (n); null: not asked for.
  void read(std::span<const Place> places, float* values, float* state) const;

  // V when the run began for the first time, on which the bound of initial values depends
  // (initial_value.h): a table that has grown since has the same values. Set before the first row.
  std::int64_t first_size() const { return first_size_; }
  void set_first_size(std::int64_t rows);

  // Adds rows: ids (n) strictly ascending, without rows so far, whole ones: values (n, D), state (n,
  // state_width); without what other ranks own. Throws Error if ids are out of order or outside [0, V).
  void restore(std::span<const std::int64_t> ids, const float* values, const float* state);

  // The functions below are of a table with limits.
  bool has_limits() const { return limiter_ != nullptr; }
  // Distinct ids (n) that a step has read, their occurrences (n), of at least 1, `slots` (n) of
  // Handles::host_slots, or empty: to be found, and `values` (n) of a custom score, else empty.
  struct Visits {
    std::vector<std::int64_t> ids, occurrences, slots, values;
  };
  // The end of a step, after the updates: counts the visits, of all ranks, of what this rank has; gives
  // waiting ids their rows; and removes the rows that are beyond the limits. All ranks call it together.
  void end_step(const Visits& visits, std::int64_t time, Communicator& comm);
  const RowCounts& counts() const { return limiter_->counts(); }
  const WaitingIds& waiting() const { return limiter_->waiting(); }
  // What a checkpoint has of the table beside its rows: the keeper's state; of the rows at `places` (n), seen
  // (n) and scores (n).
  RowLimiter::State limits_state() const { return limiter_->state(); }
  void read_history(std::span<const Place> places, std::int64_t* seen, std::int64_t* scores) const;
  // After restore() of the same ids. Without the rows and the waiting ids that other ranks own.
  void restore_history(const RowLimiter::State& state, std::span<const std::int64_t> ids,
                       std::span<const std::int64_t> seen, std::span<const std::int64_t> scores,
                       std::span<const std::int64_t> waiting_ids,
                       std::span<const std::int64_t> waiting_counts);

  // Placement::id_of().
  std::int64_t id_of(Handles selected, std::int64_t row) const {
    selected.table = number_;
    return placement_->id_of(selected, row);
  }
  // Throws UsageError that says how to make the cache larger.
  [[noreturn]] void refuse(const CacheTooSmall& error) const;

 private:
  EmbeddingTable(const TableSpec& spec, const Context& where);
  void shrink(Communicator& comm);

  TableSpec spec_;
  std::shared_ptr<Placement> placement_;
  std::size_t number_;
  Context where_;
  RowsById& rows_;
  std::int64_t first_size_;
  std::int64_t changes_ = -1;            // of RowsById::begin_changes()
  std::unique_ptr<RowLimiter> limiter_;  // of a table with limits
};

}  // namespace hstu
