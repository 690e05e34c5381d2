// Products with weights. Weights are (in, out): y = x W + b.
#pragma once

#include <vector>

#include "hstu/kernels/linear.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// y (M, N) = x (M, K) weight (K, N) + bias (N); the bias may be undefined.
Variable linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias);

// The same with only some of the weight's columns: y (M, sum of widths), the ranges concatenated.
Variable linear_columns(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                        const std::vector<ColumnRange>& columns);

// The same, and SiLU of the result's columns from `silu_from` on: a constant, whose readers give their
// gradient to y (see Columns).
struct LinearSilu {
  Variable y, activated;  // (M, N), (M, N - silu_from)
};
LinearSilu linear_silu(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                       const std::vector<ColumnRange>& columns, std::int64_t silu_from);

// y (M, N) = residual (M, N) + x (M, K) weight (K, N).
Variable linear_residual(Tape& tape, const Variable& x, const Variable& weight, const Variable& residual);

// One product per group: y (G * M, N), y[g] = x[g] (M, K) weight[g] (K, N) + bias[g] (N), with x (G * M, K),
// weight (G, K, N), bias (G, N).
Variable grouped_linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias);

}  // namespace hstu::ops
