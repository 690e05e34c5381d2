#include "hstu/ops/norm.h"

#include "hstu/kernels/layer_norm.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// Forward and Backward call one of the two kernel pairs with the parameter struct.
template <typename Forward, typename Backward>
Variable normalise(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                   double epsilon, const Forward& forward, const Backward& backward) {
  const std::int64_t m = x.rows(), n = x.cols();
  require(weight.value().size() == n && bias.value().size() == n,
          "norm: expected a weight and a bias of {}, found {}", n, to_string(weight.value().shape()));
  const DType type = x.value().dtype();
  Tensor y = Tensor::empty({m, n}, type), mean = Tensor::empty({m}, type), rstd = Tensor::empty({m}, type);
  dispatch(type, [&]<typename T>() {
    forward(kernels::LayerNormForward<T>{
        m, n, static_cast<T>(epsilon), x.value().data<T>(), weight.value().data<T>(), bias.value().data<T>(),
        y.mutable_data<T>(), mean.mutable_data<T>(), rstd.mutable_data<T>()});
  });
  return tape.record(y, {x, weight, bias}, [=](Tensor& dy) {
    dispatch(type, [&]<typename T>() {
      GradientSlot dx = x.gradient_slot();
      backward(kernels::LayerNormBackward<T>{
          m, n, x.value().data<T>(), weight.value().data<T>(), bias.value().data<T>(), mean.data<T>(),
          rstd.data<T>(), dy.data<T>(), dx.data<T>(), dx.beta<T>(), added_gradient(weight).mutable_data<T>(),
          added_gradient(bias).mutable_data<T>()});
    });
  });
}

}  // namespace

Variable layer_norm(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                    double epsilon) {
  return normalise(
      tape, x, weight, bias, epsilon, [](const auto& p) { kernels::layer_norm(p); },
      [](const auto& p) { kernels::layer_norm_backward(p); });
}

Variable swish_layer_norm(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                          double epsilon) {
  return normalise(
      tape, x, weight, bias, epsilon, [](const auto& p) { kernels::swish_layer_norm(p); },
      [](const auto& p) { kernels::swish_layer_norm_backward(p); });
}

}  // namespace hstu::ops
