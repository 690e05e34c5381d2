// The gradient of an operand that is columns of a variable, for operations that make it in memory of their
// own.
#pragma once

#include "hstu/kernels/activation.h"
#include "hstu/kernels/dry.h"
#include "hstu/kernels/elementwise.h"
#include "hstu/ops/columns.h"

namespace hstu::ops {

// make(to, stride) writes the gradient of x, or of SiLU of its columns: rows `stride` elements apart. Proper
// columns of a variable, and columns through SiLU, may be an operand once.
template <typename T, typename DeviceStream, typename Make>
void give_columns(const Columns& x, const Context& context, DeviceStream stream, const Make& make) {
  const kernels::Gradient<T> slot = gradient_of<T>(x, context);
  const std::int64_t stride = x.variable.cols();
  if (slot.accumulate) {
    require(x.width() == stride && !x.activated.defined(), "columns [{}, {}) are an operand twice",
            x.range.begin, x.range.end);
    Tensor dx = Tensor::empty({x.rows(), x.width()}, x.variable.value().dtype(), context);
    make(dx.mutable_data<T>(), x.width());
    return kernels::pass_gradient(kernels::PassGradient<T>{.size = dx.size(), .dy = dx.data<T>(), .dx = slot},
                                  stream);
  }
  make(slot.to, stride);
  if (x.activated.defined())
    kernels::silu_slope(kernels::SiluSlope<T>{x.rows(), x.width(), stride, x.template before<T>(), slot.to},
                        stream);
}

}  // namespace hstu::ops
