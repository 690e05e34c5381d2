// RowFormat: the values of a row when it begins, and how they are stored: as f32, or as bf16 in half of the
// memory. Arithmetic is in f32.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/rows/row_shape.h"

namespace hstu {

// Of the random numbers of updates in bf16.
std::uint64_t rounding_key(const RowShape& shape);

class RowFormat {
 public:
  explicit RowFormat(const RowShape& shape);

  void set_initial_bound(float bound) { shape_.bound = bound; }
  // values (D) that the row of `id` begins with.
  void begin(std::int64_t id, float* values) const;
  // values (D), and what is stored of them (value_floats(shape) floats).
  void load(const float* stored, float* values) const;
  void store(const float* values, float* stored) const;  // bf16: to the nearest, ties to even
  // bf16: stochastic rounding, to one of the two neighbours, with the probabilities that make the expectation
  // the value. Columns 8k .. 8k+7 take the halves of the words, low ones first, of philox(key of the table's
  // rounding, id, 2^24 step + k): the same for any number of ranks, threads and parts. steps < 2^40.
  void store_update(const float* values, std::int64_t id, std::int64_t step, float* stored) const;
  // update(values), which changes the values of the row of `id` at `stored`.
  template <typename Update>
  void update(std::int64_t id, std::int64_t step, float* stored, const Update& update) const {
    if (is_f32()) return update(stored);
    static thread_local std::vector<float> values;  // kept for its memory
    values.resize(static_cast<std::size_t>(shape_.dim));
    load(stored, values.data());
    update(values.data());
    store_update(values.data(), id, step, stored);
  }

 private:
  bool is_f32() const { return shape_.dtype == DType::f32; }

  RowShape shape_;
  std::uint64_t key_;  // of the rounding
};

}  // namespace hstu
