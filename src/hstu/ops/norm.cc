#include "hstu/ops/norm.h"

#include "hstu/kernels/l2_normalise.h"
#include "hstu/kernels/layer_norm.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// Forward and Backward call one of the two kernel pairs with the parameter struct and the stream.
template <Operation operation, typename Forward, typename Backward>
Variable normalise(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                   double epsilon, const Forward& forward, const Backward& backward) {
  const std::int64_t m = x.rows(), n = x.cols();
  require(weight.value().size() == n && bias.value().size() == n,
          "norm: expected a weight and a bias of {}, found {}", n, ShapeText{weight.value().shape()});
  const Context& context = tape.context();
  check_devices<operation>(context, x, weight, bias);
  const DType type = x.value().dtype(), statistics = accumulator_of(type);
  Tensor mean = Tensor::empty({m}, statistics, context), rstd = Tensor::empty({m}, statistics, context);
  auto compute = [=]() mutable {
    Tensor y = Tensor::empty({m, n}, type, context);
    dispatch<operation>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      forward(kernels::LayerNormForward<T>{.rows = m,
                                           .width = n,
                                           .epsilon = static_cast<Sum>(epsilon),
                                           .x = x.value().data<T>(),
                                           .weight = weight.value().data<Sum>(),
                                           .bias = bias.value().data<Sum>(),
                                           .y = y.mutable_data<T>(),
                                           .mean = mean.mutable_data<Sum>(),
                                           .rstd = rstd.mutable_data<Sum>()},
              stream);
    });
    return y;
  };
  Variable y = tape.record(compute(), {x, weight, bias}, [=](const Tensor& dy) {
    dispatch<operation>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      backward(kernels::LayerNormBackward<T>{.rows = m,
                                             .width = n,
                                             .x = x.value().data<T>(),
                                             .weight = weight.value().data<Sum>(),
                                             .bias = bias.value().data<Sum>(),
                                             .mean = mean.data<Sum>(),
                                             .rstd = rstd.data<Sum>(),
                                             .dy = dy.data<T>(),
                                             .dx = gradient_of<T>(x, context),
                                             .dweight = gradient_of<Sum>(weight, context),
                                             .dbias = gradient_of<Sum>(bias, context)},
               stream);
    });
  });
  if (y.needs_gradient()) y.recomputed_by(compute);
  return y;
}

}  // namespace

Variable layer_norm(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                    double epsilon) {
  return normalise<Operation::layer_norm>(
      tape, x, weight, bias, epsilon, [](const auto& p, auto stream) { kernels::layer_norm(p, stream); },
      [](const auto& p, auto stream) { kernels::layer_norm_backward(p, stream); });
}

Variable swish_layer_norm(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                          double epsilon) {
  return normalise<Operation::swish_layer_norm>(
      tape, x, weight, bias, epsilon,
      [](const auto& p, auto stream) { kernels::swish_layer_norm(p, stream); },
      [](const auto& p, auto stream) { kernels::swish_layer_norm_backward(p, stream); });
}

Variable l2_normalise(Tape& tape, const Variable& x, double epsilon) {
  const Context& context = tape.context();
  check_devices<Operation::l2_normalise>(context, x);
  const std::int64_t m = x.rows(), n = x.cols();
  const DType type = x.value().dtype();
  Tensor y = Tensor::empty({m, n}, type, context), norm = Tensor::empty({m}, accumulator_of(type), context);
  dispatch<Operation::l2_normalise>(context, type, [&]<typename T>(auto stream) {
    using Sum = Accumulator<T>;
    kernels::l2_normalise(kernels::L2Normalise<T>{.rows = m,
                                                  .width = n,
                                                  .epsilon = static_cast<Sum>(epsilon),
                                                  .x = x.value().data<T>(),
                                                  .y = y.mutable_data<T>(),
                                                  .norm = norm.mutable_data<Sum>()},
                          stream);
  });
  return tape.record(y, {x}, [=](const Tensor& dy) {
    dispatch<Operation::l2_normalise>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      kernels::l2_normalise_backward(kernels::L2NormaliseBackward<T>{.rows = m,
                                                                     .width = n,
                                                                     .epsilon = static_cast<Sum>(epsilon),
                                                                     .x = x.value().data<T>(),
                                                                     .norm = norm.data<Sum>(),
                                                                     .dy = dy.data<T>(),
                                                                     .dx = gradient_of<T>(x, context)},
                                     stream);
    });
  });
}

}  // namespace hstu::ops
