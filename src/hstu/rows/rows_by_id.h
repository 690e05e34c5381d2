// RowsById: the rows of one table as the host asks for them by id, for checkpoints, exports and limits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/rows/row_shape.h"

namespace hstu {

class RowsById {
 public:
  virtual ~RowsById() = default;

  virtual std::int64_t rows() const = 0;  // number of existing rows
  virtual bool contains(std::int64_t id) const = 0;

  // slots (n) of `ids` (n). Missing rows are created with their initial values.
  virtual void create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) = 0;
  // Adds rows: ids (n) distinct, without a row so far, values (n, D), state (n, state_width).
  virtual void import_rows(std::span<const std::int64_t> ids, const float* values, const float* state) = 0;

  // Before the first row: RowShape::bound from now on.
  virtual void set_initial_bound(float bound) = 0;

  // Every existing row by ascending id; valid until the table changes.
  virtual std::vector<RowPlace> places_by_id() const = 0;
  // begin_changes() gives a number, and changed_by_id() the rows that were created, updated or visited
  // (row_limiter.h) after the call that gave it.
  virtual std::int64_t begin_changes() = 0;
  virtual std::vector<RowPlace> changed_by_id(std::int64_t since) const = 0;
  // values (n, D) and state (n, state_width) of the existing rows at `slots` (n); null: not asked for.
  virtual void read(std::span<const std::int64_t> slots, float* values, float* state) const = 0;
};

}  // namespace hstu
