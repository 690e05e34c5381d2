#include "hstu/ops/gate.h"

#include "hstu/kernels/gate.h"
#include "hstu/ops/op.h"

namespace hstu::ops {

Variable gate(Tape& tape, const Variable& u, const Variable& o, const Variable& weight, const Variable& bias,
              double epsilon, const Dropout& dropout) {
  const std::int64_t m = u.rows(), n = u.cols();
  require(o.rows() == m && o.cols() == n && weight.value().size() == n && bias.value().size() == n,
          "gate: shapes {}, {} do not fit", to_string(u.value().shape()), to_string(o.value().shape()));
  const Context& context = tape.context();
  check_devices<Operation::gate>(context, u, o, weight, bias, dropout.row_names);
  const DType type = u.value().dtype(), statistics = accumulator_of(type);
  Tensor cat = Tensor::empty({m, 3 * n}, type, context), mean = Tensor::empty({m}, statistics, context),
         rstd = Tensor::empty({m}, statistics, context);
  dispatch<Operation::gate>(context, type, [&]<typename T>(auto stream) {
    using Sum = Accumulator<T>;
    kernels::gate(kernels::GateForward<T>{.rows = m,
                                          .width = n,
                                          .epsilon = static_cast<Sum>(epsilon),
                                          .u = u.value().data<T>(),
                                          .o = o.value().data<T>(),
                                          .weight = weight.value().data<Sum>(),
                                          .bias = bias.value().data<Sum>(),
                                          .cat = cat.mutable_data<T>(),
                                          .mean = mean.mutable_data<Sum>(),
                                          .rstd = rstd.mutable_data<Sum>(),
                                          .dropout = dropout.of_rows(m)},
                  stream);
  });
  return tape.record(cat, {u, o, weight, bias}, [=](const Tensor& dcat) {
    dispatch<Operation::gate>(context, type, [&]<typename T>(auto stream) {
      using Sum = Accumulator<T>;
      kernels::gate_backward(kernels::GateBackward<T>{.rows = m,
                                                      .width = n,
                                                      .u = u.value().data<T>(),
                                                      .o = o.value().data<T>(),
                                                      .weight = weight.value().data<Sum>(),
                                                      .bias = bias.value().data<Sum>(),
                                                      .mean = mean.data<Sum>(),
                                                      .rstd = rstd.data<Sum>(),
                                                      .dcat = dcat.data<T>(),
                                                      .du = gradient_of<T>(u, context),
                                                      .d_o = gradient_of<T>(o, context),
                                                      .dweight = gradient_of<Sum>(weight, context),
                                                      .dbias = gradient_of<Sum>(bias, context),
                                                      .dropout = dropout.of_rows(m)},
                             stream);
    });
  });
}

}  // namespace hstu::ops
