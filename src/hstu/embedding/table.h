// EmbeddingTable: V nominal rows of D floats, of which only those exist that training has touched.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/embedding/row_index.h"
#include "hstu/embedding/row_optimizer.h"
#include "hstu/embedding/row_storage.h"

namespace hstu {

struct TableConfig {
  std::string name;       // letters, digits, '_', '-' and '.': it names a file of the checkpoint
  std::int64_t rows = 0;  // V: ids are 0 .. V - 1
  std::int64_t dim = 0;   // D
};

// A row comes to life when training first asks for it, with the value that evaluation saw before:
// uniform(-1/sqrt(V), 1/sqrt(V)) from (seed, table name, id, column). An id outside [0, V) means the null
// row: it reads as zeros, takes no gradient and is not stored (BadIds counts such ids by feature). Every
// result is the same for any number of threads and any order of first touches.
class EmbeddingTable {
 public:
  // Throws UsageError when the name, V or D cannot be used.
  EmbeddingTable(TableConfig config, RowOptimizer optimizer, std::uint64_t seed);

  // out (n, D): the rows of `ids` (n); rows that do not exist yet are created.
  void lookup_for_training(std::span<const std::int64_t> ids, float* out);

  // The same values, but nothing is created: an untouched row reads as its initial value. Thread-safe.
  void lookup(std::span<const std::int64_t> ids, float* out) const;

  // One update of every row of `ids` (n, each once) by its merged gradient (n, D). Throws InternalError when
  // an id stands twice: its gradients should have been summed before (sum_by_row in unique.h).
  void apply_gradients(std::span<const std::int64_t> ids, const float* gradients, double learning_rate);

  const TableConfig& config() const { return config_; }
  const RowOptimizer& optimizer() const { return optimizer_; }
  std::uint64_t key() const { return key_; }  // of the initial values
  std::int64_t state_width() const { return state_.width(); }
  std::int64_t rows_alive() const { return index_.size(); }
  std::int64_t bytes() const;     // memory taken by rows, state and index
  std::int64_t inserted() const;  // rows created by training since construction or restore()
  bool contains(std::int64_t id) const { return index_.find(id) != RowIndex::kAbsent; }

  // For checkpoints: every existing row by ascending id. Pointers stay valid for the life of the table.
  struct Row {
    std::int64_t id;
    const float* values;  // (D)
    const float* state;   // (state_width), nullptr when that is 0
  };
  std::vector<Row> rows_by_id() const;

  // Fills an empty table: ids (n) strictly ascending, values (n, D), state (n, state_width). Throws Error
  // when ids are out of order or outside [0, V).
  void restore(std::span<const std::int64_t> ids, const float* values, const float* state);

 private:
  bool in_range(std::int64_t id) const { return id >= 0 && id < config_.rows; }
  void initialise(std::int64_t id, float* out) const;
  // The slot of each id, kAbsent for ids outside [0, V); rows that did not exist are created.
  std::vector<std::int64_t> slots_for_training(std::span<const std::int64_t> ids);

  TableConfig config_;
  RowOptimizer optimizer_;
  std::uint64_t key_;
  float bound_;
  RowIndex index_;
  RowStorage values_;
  RowStorage state_;
  std::vector<std::uint32_t> last_update_;  // [slot] number of the apply_gradients call that moved the row
  std::uint32_t updates_ = 0;
  std::int64_t restored_ = 0;
};

}  // namespace hstu
