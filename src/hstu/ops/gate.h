// The gate of an HSTU layer (kernels/gate.h states the formula).
#pragma once

#include "hstu/comm/groups.h"
#include "hstu/kernels/gate.h"
#include "hstu/ops/columns.h"
#include "hstu/ops/dropout.h"

namespace hstu::ops {

using kernels::GateForm;

// y (T, parts * N) from u (T, N) and the attention output o (T, N), with the norm's weight and bias (N).
// `group`: rows are divided among its ranks, each of which has N columns of U and of O, in the order of
// ranks; null: N is the whole row. All ranks of the group call it together with the same T, and so do their
// backward passes; they exchange 8 bytes (f32) a row in each. The group outlives the tape.
Variable gate(Tape& tape, GateForm form, const Columns& u, const Variable& o, const Variable& weight,
              const Variable& bias, double epsilon, const Dropout& dropout, const Group* group = nullptr);

}  // namespace hstu::ops
