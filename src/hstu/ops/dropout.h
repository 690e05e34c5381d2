// Dropout, alone and as an argument of other ops (kernels/dropout.h states what is drawn).
#pragma once

#include <cstdint>

#include "hstu/kernels/dropout.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

struct Dropout {
  double rate = 0;        // probability that an element is dropped, [0, 1); 0: none
  std::uint64_t key = 0;  // one for each (seed, step, place in the model)
  Tensor row_names;       // (T) i64: what the mask of a row depends on; undefined: the number of the row

  // The kernel's argument for a tensor of `rows` rows. Valid as long as row_names.
  kernels::Dropout of_rows(std::int64_t rows) const {
    if (!row_names.defined()) return {rate, key, nullptr};
    require(row_names.size() == rows, "dropout: expected names of {} rows, found {}", rows, row_names.size());
    return {rate, key, row_names.data<std::int64_t>()};
  }
};

// y (M, N) = x (M, N) times the factors of its elements, 0 or the scale of kept ones; x itself at rate 0.
Variable dropout(Tape& tape, const Variable& x, const Dropout& dropout);

}  // namespace hstu::ops
