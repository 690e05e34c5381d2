#include "hstu/ops/cast.h"

#include <utility>

#include "hstu/kernels/cast.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable cast(Tape& tape, const Tensor& x, DType type) {
  const Context& context = tape.context();
  check_devices<Operation::cast>(context, x);
  Tensor y = Tensor::empty(x.shape(), type, context);
  dispatch<Operation::cast>(context, type, [&]<typename T>(auto stream) {
    kernels::cast(kernels::Cast<T>{.size = x.size(), .x = x.data<double>(), .y = y.mutable_data<T>()},
                  stream);
  });
  return Variable::constant(y);
}

Tensor filled(Shape shape, double value, DType type, const Context& context) {
  Tensor y = Tensor::empty(shape, type, context);
  dispatch<Operation::cast>(context, type, [&]<typename T>(auto stream) {
    kernels::fill(kernels::Fill<T>{.size = y.size(), .value = value, .y = y.mutable_data<T>()}, stream);
  });
  return y;
}

}  // namespace hstu::ops
