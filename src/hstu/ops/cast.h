// Conversion of constants to another element type (kernels/cast.h).
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// x (f64, on the tape's device) as a constant of `type`: a batch holds its inputs in double for every type
// that a model computes in.
Variable cast(Tape& tape, const Tensor& x, DType type);

// A tensor of `shape` and `type`, made on the context's device, all of whose elements are `value`.
Tensor filled(Shape shape, double value, DType type, const Context& context);

}  // namespace hstu::ops
