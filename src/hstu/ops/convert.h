// Activations and weights in the type that a part of a model computes in.
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// x in `type`: x itself if it has that type, otherwise a copy between f32 and bf16. The gradient has the type
// of x.
Variable convert(Tape& tape, const Variable& x, DType type);

// A parameter as an operand of products in `type`: the parameter, or a copy of it. Its gradient is the
// parameter's, in the parameter's type: sums over a batch keep their precision.
Variable weight(Tape& tape, const Parameter& parameter, DType type);

}  // namespace hstu::ops
