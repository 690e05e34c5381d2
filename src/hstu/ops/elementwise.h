// Small ops on whole tensors.
#pragma once

#include <vector>

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// y (M, N) = a + b.
Variable add(Tape& tape, const Variable& a, const Variable& b);

// y (M, N) = a * b.
Variable multiply(Tape& tape, const Variable& a, const Variable& b);

// y (M, sum of N_i): the parts (M, N_i), concatenated along the columns.
Variable concat_columns(Tape& tape, const std::vector<Variable>& parts);

// y (sum of M_i, N): the parts (M_i, N), concatenated along the rows.
Variable concat_rows(Tape& tape, const std::vector<Variable>& parts);

}  // namespace hstu::ops
