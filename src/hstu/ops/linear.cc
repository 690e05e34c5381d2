#include "hstu/ops/linear.h"

#include "hstu/kernels/activation.h"
#include "hstu/ops/convert.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

Tensor silu_of(const Tensor& x, std::int64_t from, const Context& context) {
  Tensor y = Tensor::empty({x.rows(), x.cols() - from}, x.dtype(), context);
  dispatch<Operation::activation>(context, x.dtype(), [&]<typename T>(auto stream) {
    kernels::silu_columns(kernels::SiluColumns<T>{x.rows(), x.cols(), from, x.data<T>(), y.mutable_data<T>()},
                          stream);
  });
  return y;
}

Tensor gelu_of(const Tensor& x, const Context& context) {
  Tensor y = Tensor::empty(x.shape(), x.dtype(), context);
  dispatch<Operation::activation>(context, x.dtype(), [&]<typename T>(auto stream) {
    kernels::activate(
        kernels::Activate<T>{x.size(), kernels::Activation::gelu, x.data<T>(), y.mutable_data<T>()}, stream);
  });
  return y;
}

// `activated`, which of(y) computes again where the backward pass needs it.
template <typename Of>
Variable activated_again(const Variable& y, const Tensor& activated, const Context& context, const Of& of) {
  if (context.trace != nullptr) context.trace->touches_bytes(static_cast<std::int64_t>(activated.bytes()));
  const Variable after = Variable::constant(activated);
  if (y.needs_gradient()) after.recomputed_by([=] { return of(y.value()); });
  return after;
}

struct Activations {
  bool relu = false;            // of y
  bool gelu = false;            // of y, apart, in place of SiLU
  std::int64_t silu_from = -1;  // SiLU of y's columns from there on, apart; -1: none
};

// y (M, N) = x times some columns of the weight + bias + residual, both of which may be undefined.
LinearSilu product(Tape& tape, const LinearInput& input, const Variable& weight, const Variable& bias,
                   const Variable& residual, const std::vector<ColumnRange>& columns,
                   const Activations& activations = {}) {
  const std::int64_t silu_from = activations.silu_from;
  const bool activate = silu_from >= 0, x_is_relu = input.is_relu();
  const Variable &x = input.variable(), &gelu = input.gelu();
  const Context& context = tape.context();
  check_devices<Operation::linear>(context, x, weight, bias, residual);
  const std::int64_t m = x.rows(), k = x.cols(), weight_columns = weight.cols(),
                     n = kernels::total_width(columns);
  const DType type = x.value().dtype();
  Tensor y = Tensor::empty({m, n}, type, context), activated;
  if (activate) activated = Tensor::empty({m, n - silu_from}, type, context);
  dispatch<Operation::linear>(context, type, [&]<typename T>(auto stream) {
    tell_work(context, {m, k, n}, 2 * m * k * n);
    kernels::linear(kernels::LinearForward<T>{.rows = m,
                                              .in = k,
                                              .weight_columns = weight_columns,
                                              .columns = columns,
                                              .x = (gelu.defined() ? gelu : x).value().data<T>(),
                                              .weight = weight.value().data<T>(),
                                              .bias = data_or_null<Accumulator<T>>(bias),
                                              .residual = data_or_null<T>(residual),
                                              .relu = activations.relu,
                                              .y = y.mutable_data<T>(),
                                              .activated = activate ? activated.mutable_data<T>() : nullptr,
                                              .silu_from = silu_from,
                                              .gelu = activations.gelu,
                                              .row_stable = context.row_stable,
                                              .forward_alone = !tape.recording(),
                                              .weight_is_ready = KeptWeights::are_ready()},
                    stream);
  });
  const bool x_is_gelu = gelu.defined();
  const std::shared_ptr<const int> gelu_products = input.gelu_products();
  if (x_is_gelu) gelu.drop_value(), ++*input.gelu_products();
  const Variable result = tape.record(y, {x, weight, bias, residual}, [=](const Tensor& dy) {
    // The residual's gradient is dy, which nothing reads after this operation.
    const bool taken = residual.defined() && residual.needs_gradient() && residual.take_gradient(dy);
    Tensor x_again;
    if (x_is_gelu) x_again = Tensor::empty(x.value().shape(), type, context);
    const bool in_place =
        x_is_gelu && *gelu_products == 1 && x.needs_gradient() && x.take_gradient(x.value());
    dispatch<Operation::linear>(context, type, [&]<typename T>(auto stream) {
      tell_work(context, {m, k, n}, (x.needs_gradient() ? 4 : 2) * m * k * n);
      kernels::Gradient<T> dx = gradient_of<T>(x, context);
      if (in_place) dx.accumulate = false;
      kernels::linear_backward(
          kernels::LinearBackward<T>{
              .rows = m,
              .in = k,
              .weight_columns = weight_columns,
              .columns = columns,
              .x = x.value().data<T>(),
              .weight = weight.value().data<T>(),
              .dy = dy.data<T>(),
              .x_is_relu = x_is_relu,
              .before_gelu = x_is_gelu ? x.value().data<T>() : nullptr,
              .x_again = x_is_gelu ? x_again.mutable_data<T>() : nullptr,
              .dx = dx,
              .dweight = gradient_of<Accumulator<T>>(weight, context),
              .dbias = gradient_of<Accumulator<T>>(bias, context),
              .dresidual = taken ? kernels::Gradient<T>{} : gradient_of<T>(residual, context)},
          stream);
    });
  });
  if (!activate) return {result, {}};
  if (activations.gelu)
    return {result, activated_again(result, activated, context,
                                    [=](const Tensor& of) { return gelu_of(of, context); })};
  return {result, with_silu(result, activated, silu_from, context)};
}

void check_columns(const Variable& x, const Variable& weight, const Variable& bias,
                   const std::vector<ColumnRange>& columns) {
  require(weight.rows() == x.cols() && (!bias.defined() || bias.value().size() == weight.cols()),
          "linear: expected a weight of {} rows and a bias of its columns, found {}", x.cols(),
          ShapeText{weight.value().shape()});
  for (const ColumnRange& c : columns) {
    require(0 <= c.begin && c.begin <= c.end && c.end <= weight.cols(), "linear: columns [{}, {}) of {}",
            c.begin, c.end, weight.cols());
  }
}

}  // namespace

Variable with_silu(const Variable& y, const Tensor& activated, std::int64_t silu_from,
                   const Context& context) {
  return activated_again(y, activated, context,
                         [=](const Tensor& of) { return silu_of(of, silu_from, context); });
}

Variable linear(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias) {
  return linear_columns(tape, x, weight, bias, {{0, weight.cols()}});
}

LinearInput linear_relu(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias) {
  const std::vector<ColumnRange> all{{0, weight.cols()}};
  check_columns(x.variable(), weight, bias, all);
  LinearInput y = product(tape, x, weight, bias, {}, all, {.relu = true}).y;
  y.is_relu_ = true;
  return y;
}

LinearInput linear_gelu(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias) {
  const std::vector<ColumnRange> all{{0, weight.cols()}};
  check_columns(x.variable(), weight, bias, all);
  const LinearSilu both = product(tape, x, weight, bias, {}, all, {.gelu = true, .silu_from = 0});
  LinearInput y = both.y;
  y.gelu_ = both.activated, y.gelu_products_ = std::make_shared<int>(0);
  return y;
}

Variable linear_columns(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias,
                        const std::vector<ColumnRange>& columns) {
  check_columns(x.variable(), weight, bias, columns);
  return product(tape, x, weight, bias, {}, columns).y;
}

LinearSilu linear_silu(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias,
                       const std::vector<ColumnRange>& columns, std::int64_t silu_from) {
  check_columns(x, weight, bias, columns);
  require(0 <= silu_from && silu_from <= kernels::total_width(columns), "linear_silu: from column {} of {}",
          silu_from, kernels::total_width(columns));
  return product(tape, x, weight, bias, {}, columns, {.silu_from = silu_from});
}

Variable linear_residual(Tape& tape, const LinearInput& x, const Variable& weight, const Variable& bias,
                         const Variable& residual) {
  const std::vector<ColumnRange> all{{0, weight.cols()}};
  check_columns(x.variable(), weight, bias, all);
  require(residual.rows() == x.variable().rows() && residual.cols() == weight.cols(),
          "linear_residual: expected a residual of {} x {}, found {}", x.variable().rows(), weight.cols(),
          ShapeText{residual.value().shape()});
  return product(tape, x, weight, bias, residual, all).y;
}

Variable grouped_linear(Tape& tape, const Variable& x, const Variable& weight, const Variable& bias) {
  const std::int64_t groups = weight.rows(), k = x.cols();
  const std::int64_t m = groups > 0 ? x.rows() / groups : 0, n = bias.cols();
  require(x.rows() == groups * m && weight.cols() == k * n && bias.rows() == groups,
          "grouped_linear: shapes {}, {}, {} do not fit", ShapeText{x.value().shape()},
          ShapeText{weight.value().shape()}, ShapeText{bias.value().shape()});
  const Context& context = tape.context();
  check_devices<Operation::grouped_linear>(context, x, weight, bias);
  const DType type = x.value().dtype();
  Tensor y = Tensor::empty({groups * m, n}, type, context);
  dispatch<Operation::grouped_linear>(context, type, [&]<typename T>(auto stream) {
    tell_work(context, {groups, m, k, n}, 2 * groups * m * k * n);
    kernels::grouped_linear(kernels::GroupedLinearForward<T>{.groups = groups,
                                                             .rows = m,
                                                             .in = k,
                                                             .out = n,
                                                             .x = x.value().data<T>(),
                                                             .weight = weight.value().data<T>(),
                                                             .bias = bias.value().data<Accumulator<T>>(),
                                                             .y = y.mutable_data<T>(),
                                                             .row_stable = context.row_stable},
                            stream);
  });
  return tape.record(y, {x, weight, bias}, [=](const Tensor& dy) {
    dispatch<Operation::grouped_linear>(context, type, [&]<typename T>(auto stream) {
      tell_work(context, {groups, m, k, n}, (x.needs_gradient() ? 4 : 2) * groups * m * k * n);
      kernels::grouped_linear_backward(
          kernels::GroupedLinearBackward<T>{.groups = groups,
                                            .rows = m,
                                            .in = k,
                                            .out = n,
                                            .x = x.value().data<T>(),
                                            .weight = weight.value().data<T>(),
                                            .dy = dy.data<T>(),
                                            .dx = gradient_of<T>(x, context),
                                            .dweight = gradient_of<Accumulator<T>>(weight, context),
                                            .dbias = gradient_of<Accumulator<T>>(bias, context)},
          stream);
    });
  });
}

}  // namespace hstu::ops
