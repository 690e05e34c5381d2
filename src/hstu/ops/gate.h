// The gate of an HSTU layer (kernels/gate.h states the formula).
#pragma once

#include "hstu/ops/dropout.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// cat (T, 3 * N) from u (T, N) before its activation and the attention output o (T, N).
Variable gate(Tape& tape, const Variable& u, const Variable& o, const Variable& weight, const Variable& bias,
              double epsilon, const Dropout& dropout);

}  // namespace hstu::ops
