// A layer of a forward pass without a backward pass (kernels/dense.h).
#pragma once

#include <optional>

#include "hstu/ops/activation.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// y (M, N) = activation(x (M, K) weight (K, N) + bias) + residual, which may be undefined.
Variable dense(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
               const std::optional<Activation>& activation, const Variable& residual);

}  // namespace hstu::ops
