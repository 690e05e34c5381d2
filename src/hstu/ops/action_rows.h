// The input rows of an action encoder (kernels/action_rows.h).
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// y (n + 1, bits * A): row i is the concatenation over the action bits of [actions[i] has the bit] *
// table[bit] (table is (bits, A)); the last row is `target` (1, bits * A), which a candidate has in place of
// its own action. actions (n) and bits are u8 tensors on the tape's device.
Variable action_rows(Tape& tape, const Variable& table, const Variable& target, const Tensor& actions,
                     const Tensor& bits);

}  // namespace hstu::ops
