#include "hstu/ops/gate.h"

#include <utility>

#include "hstu/kernels/gate.h"
#include "hstu/ops/exchange.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

// mean and rstd (T) of rows of which each rank has the columns o (T, N).
void find_statistics(const Variable& o, const Group& group, double epsilon, Tensor& mean, Tensor& rstd,
                     const Context& context) {
  const std::int64_t m = o.rows(), n = o.cols(), ranks = group.size();
  Tensor moments = Tensor::empty({m, 2}, mean.dtype(), context);
  dispatch<Operation::gate>(context, o.value().dtype(), [&]<typename T>(auto stream) {
    kernels::gate_moments(kernels::GateMoments<T>{.rows = m,
                                                  .width = n,
                                                  .o = o.value().data<T>(),
                                                  .moments = moments.mutable_data<Accumulator<T>>()},
                          stream);
  });
  const Tensor all = gathered_rows(moments, std::vector(static_cast<std::size_t>(ranks), m), group, context);
  dispatch<Operation::gate>(context, o.value().dtype(), [&]<typename T>(auto stream) {
    using Sum = Accumulator<T>;
    kernels::combine_moments(kernels::CombineMoments<Sum>{.ranks = ranks,
                                                          .rows = m,
                                                          .width = n,
                                                          .epsilon = static_cast<Sum>(epsilon),
                                                          .moments = all.data<Sum>(),
                                                          .mean = mean.mutable_data<Sum>(),
                                                          .rstd = rstd.mutable_data<Sum>()},
                             stream);
  });
}

}  // namespace

Variable gate(Tape& tape, GateForm form, const Columns& u, const Variable& o, const Variable& weight,
              const Variable& bias, double epsilon, const Dropout& dropout, const Group* group) {
  const std::int64_t m = u.rows(), n = u.width();
  require(o.rows() == m && o.cols() == n && weight.value().size() == n && bias.value().size() == n,
          "gate: {} rows of {} columns and shape {} do not fit", m, n, ShapeText{o.value().shape()});
  const Context& context = tape.context();
  check_devices<Operation::gate>(context, u.variable, o, weight, bias, dropout.row_names);
  const DType type = o.value().dtype(), statistics = accumulator_of(type);
  Tensor mean = Tensor::empty({m}, statistics, context), rstd = Tensor::empty({m}, statistics, context);
  kernels::GateColumns columns;
  if (group != nullptr) {
    columns = {.first = group->rank() * n, .whole = group->size() * n};
    find_statistics(o, *group, epsilon, mean, rstd, context);
  }
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
                                            .dropout = dropout.of_rows(m),
                                            .columns = columns},
                    stream);
    });
    return y;
  };
  auto backward = [=](const Tensor& dy) {
    Tensor sums = group != nullptr ? Tensor::empty({m, 2}, statistics, context) : Tensor();
    const auto pass = [&]<typename T>() {
      using Sum = Accumulator<T>;
      return kernels::GateBackward<T>{.form = form,
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
                                      .du = {},
                                      .d_o = {},
                                      .dweight = {},
                                      .dbias = {},
                                      .dropout = dropout.of_rows(m),
                                      .columns = columns,
                                      .sums = sums.defined() ? sums.mutable_data<Sum>() : nullptr};
    };
    if (group != nullptr) {
      dispatch<Operation::gate>(context, type, [&]<typename T>(auto stream) {
        kernels::gate_backward_sums(pass.template operator()<T>(), stream);
      });
      sums = summed_over_ranks(sums, *group, context);
    }
    dispatch<Operation::gate>(context, type, [&]<typename T>(auto stream) {
      kernels::GateBackward<T> p = pass.template operator()<T>();
      p.du = gradient_of<T>(u, context);
      p.du_stride = u.variable.cols();
      p.d_o = gradient_of<T>(o, context);
      p.dweight = gradient_of<Accumulator<T>>(weight, context);
      p.dbias = gradient_of<Accumulator<T>>(bias, context);
      kernels::gate_backward(p, stream);
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
