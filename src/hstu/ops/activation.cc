#include "hstu/ops/activation.h"

#include "hstu/ops/op.h"

namespace hstu::ops {

Variable activate(Tape& tape, const Variable& x, Activation activation) {
  const Context& context = tape.context();
  check_devices<Operation::activation>(context, x);
  const DType type = x.value().dtype();
  const auto compute = [=] {
    Tensor values = Tensor::empty(x.value().shape(), type, context);
    dispatch<Operation::activation>(context, type, [&]<typename T>(auto stream) {
      kernels::activate(kernels::Activate<T>{.size = values.size(),
                                             .activation = activation,
                                             .x = x.value().data<T>(),
                                             .y = values.mutable_data<T>()},
                        stream);
    });
    return values;
  };
  Variable y = tape.record(compute(), {x}, [=](const Tensor& dy) {
    dispatch<Operation::activation>(context, type, [&]<typename T>(auto stream) {
      kernels::activate_backward(kernels::ActivateBackward<T>{.size = dy.size(),
                                                              .activation = activation,
                                                              .x = x.value().data<T>(),
                                                              .dy = dy.data<T>(),
                                                              .dx = gradient_of<T>(x, context)},
                                 stream);
    });
  });
  if (y.needs_gradient()) y.recomputed_by(compute);
  return y;
}

}  // namespace hstu::ops
