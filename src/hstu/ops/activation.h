// Activation functions (kernels/activation.h states them).
#pragma once

#include "hstu/kernels/activation.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

using kernels::Activation;

// y (M, N) = activation(x (M, N)).
Variable activate(Tape& tape, const Variable& x, Activation activation);

}  // namespace hstu::ops
