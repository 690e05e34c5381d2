// RowStore: the storage of one table's rows. A table looks up slots, gathers and updates by slot, and
// exports; only the store knows whether rows are in host memory, in device memory or in tiers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/rows/initial_value.h"
#include "hstu/rows/row_optimizer.h"
#include "hstu/tensor/dtype.h"

namespace hstu {

// What a store needs of its table's configuration.
struct RowShape {
  std::int64_t rows = 0;         // V: ids are 0 .. V - 1
  std::int64_t dim = 0;          // D values per row
  std::int64_t state_width = 0;  // floats of optimizer state per row
  std::uint64_t key = 0;         // of the initial values (initial_value.h)
  float bound = 0;
  InitialValue initial = {};
  std::int64_t first_column = 0;  // of the D values in the whole row, for the initial values
  DType dtype = DType::f32;       // f32 or bf16, of the values; the state is f32
};

// The memory of a row's values, in floats.
constexpr std::int64_t value_floats(const RowShape& shape) {
  return shape.dtype == DType::bf16 ? (shape.dim + 1) / 2 : shape.dim;
}
// A stored row has its values, its state and padding to 16 bytes. These are where the state begins and where
// the row ends, in floats. Values and state are aligned to 16 bytes where D is a multiple of 4.
constexpr std::int64_t state_begin(const RowShape& shape) {
  return shape.dtype == DType::bf16 ? (value_floats(shape) + 3) / 4 * 4 : shape.dim;
}
constexpr std::int64_t stored_floats(const RowShape& shape) {
  return (state_begin(shape) + shape.state_width + 3) / 4 * 4;
}

class RowDirectory;
class RowLines;

// A step reads more rows of a table than its cache has room for.
class CacheTooSmall : public UsageError {
 public:
  CacheTooSmall(std::int64_t step_rows, std::int64_t room)
      : UsageError(fmt::format("a step reads {} rows, and the cache has room for {}", step_rows, room)),
        rows(step_rows) {}
  std::int64_t rows;  // that would do, for what the step has read so far
};

class RowStore {
 public:
  // Slots without storage.
  static constexpr std::int64_t kAbsent = -1;  // the row does not exist: it reads as its initial value
  static constexpr std::int64_t kNull = -2;    // the id is outside [0, V): it reads as zeros, without updates

  // An existing row.
  struct Place {
    std::int64_t id;
    std::int64_t slot;
  };

  virtual ~RowStore() = default;

  virtual std::int64_t rows() const = 0;   // number of existing rows
  virtual std::int64_t bytes() const = 0;  // memory taken by rows, state and index
  virtual bool contains(std::int64_t id) const = 0;

  // slots (n) of `ids` (n). create_slots creates missing rows with their initial values; no other call may
  // run at the same time.
  virtual void find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const = 0;
  virtual void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) = 0;

  // out (n, D): the rows of `ids` (n) at `slots` (n).
  virtual void gather(std::span<const std::int64_t> ids, std::span<const std::int64_t> slots,
                      float* out) const = 0;

  // The number of the step whose updates follow, on which the rounding of bf16 depends.
  virtual void begin_updates(std::int64_t /*step*/) {}

  // Updates each row at `slots` (n, each once) by its gradient (n, D). Ignores negative slots. Throws
  // InternalError naming the place if a slot occurs twice.
  virtual void update(std::span<const std::int64_t> slots, const float* gradients,
                      const RowOptimizer& optimizer, double learning_rate) = 0;

  // For checkpoints: every existing row by ascending id; valid until the store changes.
  virtual std::vector<Place> places_by_id() const = 0;
  // For checkpoints that keep changes alone. begin_changes() gives a number, and changed_by_id() the rows
  // that were created, updated or visited (row_keeper.h) after the call that gave it. A store that does not
  // follow changes gives every row.
  virtual std::int64_t begin_changes() { return -1; }
  virtual std::vector<Place> changed_by_id(std::int64_t since) const;
  // values (n, D) and state (n, state_width) of the existing rows at `slots` (n); null: not asked for.
  virtual void read(std::span<const std::int64_t> slots, float* values, float* state) const = 0;
  // Adds rows: ids (n) distinct, without a row so far, values (n, D), state (n, state_width).
  virtual void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) = 0;

  // Of a store whose slots the host assigns, which a table with limits needs; else null.
  virtual RowDirectory* directory() { return nullptr; }
  // Of a store in the memory of a GPU; else null.
  virtual RowLines* lines() { return nullptr; }
};

inline std::vector<RowStore::Place> RowStore::changed_by_id(std::int64_t) const {
  return places_by_id();
}

}  // namespace hstu
