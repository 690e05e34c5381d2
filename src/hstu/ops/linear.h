// Products with weights. Weights are (in, out): y = x W + b.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// Columns [begin, end) of a weight matrix.
struct ColumnRange {
  std::int64_t begin, end;
};

// y (M, N) = x (M, K) weight (K, N) + bias (N); the bias may be undefined.
Variable linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias);

// The same with some of the weight's columns only: y (M, sum of widths), the ranges side by side.
Variable linear_columns(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                        const std::vector<ColumnRange>& columns);

// y (M, N) = residual (M, N) + x (M, K) weight (K, N).
Variable linear_residual(Tape& tape, const Variable& x, const Variable& weight, const Variable& residual);

// One product a group: y (C * M, N), y[c] = x[c] (M, K) weight[c] (K, N) + bias[c] (N), with x (C * M, K),
// weight (C, K, N), bias (C, N).
Variable grouped_linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias);

}  // namespace hstu::ops
