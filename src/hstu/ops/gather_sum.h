// Rows picked from several sources and added up (kernels/gather_sum.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hstu/kernels/dropout.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

using RowIndex = std::shared_ptr<const std::vector<std::int32_t>>;  // shared with the backward pass

inline RowIndex row_index(std::vector<std::int32_t> index) {
  return std::make_shared<const std::vector<std::int32_t>>(std::move(index));
}

struct GatherTerm {
  Variable rows;   // (n, N)
  RowIndex index;  // (T) row of each token, negative for none
  double factor = 1;
};

// y (T, N) = drop(sum over terms of factor * rows[index[t]]).
Variable gather_sum(Tape& tape, const std::vector<GatherTerm>& terms, const kernels::Dropout& dropout);

// y (T, N) = rows[index[t]].
Variable gather_rows(Tape& tape, const Variable& rows, const RowIndex& index);

}  // namespace hstu::ops
