#include "hstu/ops/rms_norm.h"

#include "hstu/kernels/rms_norm.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable rms_norm(Tape& tape, const Variable& x, const Variable& weight, double epsilon) {
  const std::int64_t m = x.rows(), n = x.cols();
  require(weight.value().size() == n, "rms_norm: expected a weight of {}, found {}", n,
          ShapeText{weight.value().shape()});
  const Context& context = tape.context();
  check_devices<Operation::rms_norm>(context, x, weight);
  const DType type = x.value().dtype();
  Tensor factor = Tensor::empty({m}, accumulator_of(type), context);
  auto compute = [=]() mutable {
    Tensor rows = Tensor::empty({m, n}, type, context);
    dispatch<Operation::rms_norm>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      kernels::rms_norm(kernels::RmsNorm<T>{.rows = m,
                                            .width = n,
                                            .epsilon = static_cast<Sum>(epsilon),
                                            .x = x.value().data<T>(),
                                            .weight = weight.value().data<Sum>(),
                                            .y = rows.mutable_data<T>(),
                                            .factor = factor.mutable_data<Sum>()},
                        stream);
    });
    return rows;
  };
  Variable y = tape.record(compute(), {x, weight}, [=](const Tensor& dy) {
    dispatch<Operation::rms_norm>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      kernels::rms_norm_backward(kernels::RmsNormBackward<T>{.rows = m,
                                                             .width = n,
                                                             .x = x.value().data<T>(),
                                                             .weight = weight.value().data<Sum>(),
                                                             .factor = factor.data<Sum>(),
                                                             .dy = dy.data<T>(),
                                                             .dx = gradient_of<T>(x, context),
                                                             .dweight = gradient_of<Sum>(weight, context)},
                                 stream);
    });
  });
  if (y.needs_gradient()) y.recomputed_by(compute);
  return y;
}

}  // namespace hstu::ops
