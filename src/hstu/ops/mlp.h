// An MLP: linear, swish layer norm, linear, layer norm.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

struct MlpWeights {
  Variable weight1, bias1;            // (in, hidden), (hidden)
  Variable swish_weight, swish_bias;  // (hidden)
  Variable weight2, bias2;            // (hidden, out), (out)
  Variable norm_weight, norm_bias;    // (out); undefined: without the last norm
};

// y (M, out) from x (M, in), plus `addend` (M, out), which may be undefined. On a GPU one kernel computes all
// of it if x is fp32, the MLP small (kernels::is_small_mlp) and no stable rows are asked for. Throws
// InternalError if shapes do not fit.
Variable mlp(Tape& tape, const Variable& x, const MlpWeights& weights, double epsilon,
             const Variable& addend = {});

}  // namespace hstu::ops
