// Sums of rows gathered from several sources (kernels/gather_sum.h).
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/ops/dropout.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// An index on the host: (T) i32.
inline Tensor row_index(const std::vector<std::int32_t>& index) {
  return Tensor::from<std::int32_t>({static_cast<std::int64_t>(index.size())}, index);
}

struct GatherTerm {
  Variable rows;  // (n, N)
  Tensor index;   // (T) i32, on the device of the rows: the row of each token, negative for none
  double factor = 1;
};

// y (T, N) = drop(sum over terms of factor * rows[index[t]]). The kernel throws InternalError for an index
// of n or more.
Variable gather_sum(Tape& tape, const std::vector<GatherTerm>& terms, const Dropout& dropout);

// y (T, N) = rows[index[t]].
Variable gather_rows(Tape& tape, const Variable& rows, const Tensor& index);

struct Gathered {
  Variable rows;  // (n_i, N_i)
  Tensor index;   // (T_i) i32, as in GatherTerm
};
// y (T, sum of N_i): the gathered rows of the parts side by side; all parts have T indices.
Variable gather_columns(Tape& tape, const std::vector<Gathered>& parts);
// y (sum of T_i, N): those of each part below those of the part before; all rows have N columns.
Variable gather_blocks(Tape& tape, const std::vector<Gathered>& parts);

}  // namespace hstu::ops
