// What a store needs of its table's configuration, and what all stores call their rows.
#pragma once

#include <cstdint>

#include "hstu/rows/initial_value.h"
#include "hstu/tensor/dtype.h"

namespace hstu {

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

// A row has a slot in its table, which it keeps while it exists. Slots without storage:
inline constexpr std::int64_t kAbsentRow = -1;  // the row does not exist: it reads as its initial value
inline constexpr std::int64_t kNullRow = -2;  // the id is outside [0, V): it reads as zeros, without updates
// The gradient is with that of an earlier part of the batch (Placement::merge).
inline constexpr std::int64_t kMergedRow = -3;

// An existing row.
struct RowPlace {
  std::int64_t id;
  std::int64_t slot;
};

}  // namespace hstu
