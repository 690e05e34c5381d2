// The gate of an HSTU layer (kernels/gate.h states the formula).
#pragma once

#include "hstu/kernels/gate.h"
#include "hstu/ops/columns.h"
#include "hstu/ops/dropout.h"

namespace hstu::ops {

using kernels::GateForm;

// y (T, parts * N) from u (T, N) and the attention output o (T, N), with the norm's weight and bias (N).
Variable gate(Tape& tape, GateForm form, const Columns& u, const Variable& o, const Variable& weight,
              const Variable& bias, double epsilon, const Dropout& dropout);

}  // namespace hstu::ops
