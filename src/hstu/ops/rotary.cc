#include "hstu/ops/rotary.h"

#include "hstu/kernels/rotary.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable rotary(Tape& tape, const Columns& x, const Tensor& position, std::int64_t head_dim, double base) {
  const std::int64_t rows = x.rows(), width = x.width();
  require(head_dim > 0 && head_dim % 2 == 0 && width % head_dim == 0 && position.size() == rows,
          "rotary: {} x {} and {} positions do not fit heads of {}", rows, width, position.size(), head_dim);
  const Context& context = tape.context();
  check_devices<Operation::rotary>(context, x.variable, position);
  const DType type = x.variable.value().dtype();
  Tensor y = Tensor::empty({rows, width}, type, context);
  const auto turn = [=]<typename T>(const T* from, std::int64_t stride, bool back, kernels::Gradient<T> to,
                                    std::int64_t to_stride, auto stream) {
    kernels::rotary(kernels::Rotary<T>{.rows = rows,
                                       .heads = width / head_dim,
                                       .head_dim = head_dim,
                                       .base = base,
                                       .back = back,
                                       .position = position.data<std::int32_t>(),
                                       .x = from,
                                       .x_stride = stride,
                                       .y = to,
                                       .y_stride = to_stride},
                    stream);
  };
  dispatch<Operation::rotary>(context, type, [&]<typename T>(auto stream) {
    turn(x.data<T>(), x.stride(), false, kernels::Gradient<T>{y.mutable_data<T>()}, width, stream);
  });
  return tape.record(y, {x.variable}, [=](const Tensor& dy) {
    dispatch<Operation::rotary>(context, type, [&]<typename T>(auto stream) {
      const kernels::Gradient<T> dx = gradient_of<T>(x, context);
      if (dx.to != nullptr) turn(dy.data<T>(), width, true, dx, x.variable.cols(), stream);
    });
  });
}

}  // namespace hstu::ops
