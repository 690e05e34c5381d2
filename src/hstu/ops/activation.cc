#include "hstu/ops/activation.h"

#include "hstu/ops/op.h"

namespace hstu::ops {

Variable activate(Tape& tape, const Variable& x, Activation activation) {
  const Context& context = tape.context();
  check_devices<Operation::activation>(context, x);
  const DType type = x.value().dtype();
  Tensor y = Tensor::empty(x.value().shape(), type, context);
  dispatch<Operation::activation>(context, type, [&]<typename T>(auto stream) {
    kernels::activate(
        kernels::Activate<T>{
            .size = y.size(), .activation = activation, .x = x.value().data<T>(), .y = y.mutable_data<T>()},
        stream);
  });
  return tape.record(y, {x}, [=](const Tensor& dy) {
    dispatch<Operation::activation>(context, type, [&]<typename T>(auto stream) {
      kernels::activate_backward(kernels::ActivateBackward<T>{.size = dy.size(),
                                                              .activation = activation,
                                                              .x = x.value().data<T>(),
                                                              .dy = dy.data<T>(),
                                                              .dx = gradient_of<T>(x, context)},
                                 stream);
    });
  });
}

}  // namespace hstu::ops
