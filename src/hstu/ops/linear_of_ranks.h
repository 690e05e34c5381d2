// Products of the tokens of all ranks of a group, where each rank has a part of the weight, with the
// exchanges that they need beside them: a rank multiplies its own tokens while those of the others are under
// way. All ranks of the group call an operation together, and so do their backward passes.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/ops/linear.h"

namespace hstu::ops {

struct GatheredLinear {
  LinearSilu product;
  Variable
      x;  // (T, K) the rows of all ranks, a constant; where its value is dropped, ranks exchange once more
};

// linear_columns of all_gather_rows(own): y (T, N) of own (T_r, K), weight (K, columns of this rank), bias or
// undefined. silu_from: as in linear_silu; -1: none. `rows`: (ranks) T_r of each, which may be 0. `group`
// outlives the tape. Its backward pass sends the gradient of x beside the product for that of the weight.
GatheredLinear linear_of_gathered(Tape& tape, const Variable& own, const std::vector<std::int64_t>& rows,
                                  const Group& group, const Variable& weight, const Variable& bias,
                                  const std::vector<ColumnRange>& columns, std::int64_t silu_from);

// reduce_scatter_rows of a product: y (T_r, N) = this rank's rows in the sum over ranks of x (T, K) times
// weight (K, N), added in the order of ranks, + residual (T_r, N), which may be undefined.
Variable scattered_linear(Tape& tape, const Variable& x, const Variable& weight,
                          const std::vector<std::int64_t>& rows, const Group& group,
                          const Variable& residual);

}  // namespace hstu::ops
