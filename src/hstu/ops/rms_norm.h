// Root mean square norm (kernels/rms_norm.h).
#pragma once

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// y (M, N) = x (M, N) / its root mean square * weight (N), by rows.
Variable rms_norm(Tape& tape, const Variable& x, const Variable& weight, double epsilon);

}  // namespace hstu::ops
