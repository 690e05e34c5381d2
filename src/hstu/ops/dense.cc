#include "hstu/ops/dense.h"

#include "hstu/kernels/dense.h"
#include "hstu/kernels/linear.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable dense(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
               const std::optional<Activation>& activation, const Variable& residual) {
  const std::int64_t m = x.rows(), k = x.cols(), n = weight.cols();
  require(!tape.recording(), "a dense layer in one pass has no backward pass");
  require(weight.rows() == k && bias.value().size() == n &&
              (!residual.defined() || (residual.rows() == m && residual.cols() == n)),
          "dense: {} x {} and a weight of {} x {} do not fit the bias or the residual", m, k, weight.rows(),
          n);
  const Context& context = tape.context();
  check_devices<Operation::linear>(context, x, weight, bias, residual);
  const DType type = x.value().dtype();
  Tensor y = Tensor::empty({m, n}, type, context);
  dispatch<Operation::linear>(context, type, [&]<typename T>(auto stream) {
    if constexpr (std::is_same_v<decltype(stream), DryStream>) {
      const ColumnRange all{0, n};
      kernels::linear(
          kernels::LinearForward<T>{.rows = m, .in = k, .weight_columns = n, .columns = {&all, 1}}, stream);
    } else {
      kernels::dense(kernels::Dense<T>{.rows = m,
                                       .in = k,
                                       .out = n,
                                       .x = x.value().data<T>(),
                                       .weight = weight.value().data<T>(),
                                       .bias = bias.value().data<Accumulator<T>>(),
                                       .activation = activation,
                                       .residual = residual.defined() ? residual.value().data<T>() : nullptr,
                                       .y = y.mutable_data<T>(),
                                       .weight_is_ready = KeptWeights::are_ready(),
                                       .row_stable = context.row_stable},
                     stream);
    }
  });
  return Variable::constant(y);
}

}  // namespace hstu::ops
