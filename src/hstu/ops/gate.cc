#include "hstu/ops/gate.h"

#include <utility>

#include "hstu/kernels/gate.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable gate(Tape& tape, GateForm form, const Columns& u, const Variable& o, const Variable& weight,
              const Variable& bias, double epsilon, const Dropout& dropout) {
  const std::int64_t m = u.rows(), n = u.width();
  require(o.rows() == m && o.cols() == n && weight.value().size() == n && bias.value().size() == n,
          "gate: {} rows of {} columns and shape {} do not fit", m, n, ShapeText{o.value().shape()});
  const Context& context = tape.context();
  check_devices<Operation::gate>(context, u.variable, o, weight, bias, dropout.row_names);
  const DType type = o.value().dtype(), statistics = accumulator_of(type);
  Tensor mean = Tensor::empty({m}, statistics, context), rstd = Tensor::empty({m}, statistics, context);
  auto compute = [=]() mutable {
    Tensor y = Tensor::empty({m, kernels::gate_parts(form) * n}, type, context);
    dispatch<Operation::gate>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      kernels::gate(kernels::GateForward<T>{.form = form,
                                            .rows = m,
                                            .width = n,
                                            .epsilon = static_cast<Sum>(epsilon),
                                            .u = u.data<T>(),
                                            .u_stride = u.stride(),
                                            .o = o.value().data<T>(),
                                            .weight = weight.value().data<Sum>(),
                                            .bias = bias.value().data<Sum>(),
                                            .y = y.mutable_data<T>(),
                                            .mean = mean.mutable_data<Sum>(),
                                            .rstd = rstd.mutable_data<Sum>(),
                                            .dropout = dropout.of_rows(m)},
                    stream);
    });
    return y;
  };
  auto backward = [=](const Tensor& dy) {
    dispatch<Operation::gate>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      kernels::gate_backward(kernels::GateBackward<T>{.form = form,
                                                      .rows = m,
                                                      .width = n,
                                                      .u = u.data<T>(),
                                                      .u_stride = u.stride(),
                                                      .o = o.value().data<T>(),
                                                      .weight = weight.value().data<Sum>(),
                                                      .bias = bias.value().data<Sum>(),
                                                      .mean = mean.data<Sum>(),
                                                      .rstd = rstd.data<Sum>(),
                                                      .dy = dy.data<T>(),
                                                      .du = gradient_of<T>(u, context),
                                                      .du_stride = u.variable.cols(),
                                                      .d_o = gradient_of<T>(o, context),
                                                      .dweight = gradient_of<Sum>(weight, context),
                                                      .dbias = gradient_of<Sum>(bias, context),
                                                      .dropout = dropout.of_rows(m)},
                             stream);
    });
  };
  // U, O and the results; then their gradients too.
  const auto operand = static_cast<std::int64_t>(o.value().bytes());
  const std::int64_t results = kernels::gate_parts(form) * operand;
  Variable y = tape.record(compute(), {u.variable, o, weight, bias}, std::move(backward),
                           MovedBytes{2 * operand + results, 4 * operand + results});
  if (y.needs_gradient()) y.recomputed_by(compute);
  return y;
}

}  // namespace hstu::ops
