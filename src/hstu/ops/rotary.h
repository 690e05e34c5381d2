// Rotary positions (kernels/rotary.h).
#pragma once

#include <cstdint>

#include "hstu/ops/columns.h"

namespace hstu::ops {

// y (T, W) from columns x (T, W) of heads of the even width head_dim, turned by position (T) i32.
Variable rotary(Tape& tape, const Columns& x, const Tensor& position, std::int64_t head_dim, double base);

}  // namespace hstu::ops
