// Constants under another type (kernels/cast.h).
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// x (f64, on the tape's device) as a constant of `type`: inputs of a batch are exact to double, whatever a
// model computes in.
Variable cast(Tape& tape, const Tensor& x, DType type);

}  // namespace hstu::ops
