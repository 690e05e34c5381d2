#include "hstu/ops/mlp.h"

#include <algorithm>
#include <array>

#include "hstu/kernels/mlp.h"
#include "hstu/ops/elementwise.h"
#include "hstu/ops/linear.h"
#include "hstu/ops/norm.h"
#include "hstu/ops/op.h"

namespace hstu::ops {
namespace {

using Parameters = std::array<Variable, kernels::kMlpParameters>;  // in the order of kernels::MlpParameter

// Of the pass, or of the one that a dry run plans.
bool is_on_gpu(const Context& context) {
  DryMemoryPool* const dry = context.memory->dry();
  return dry != nullptr ? !dry->kernels().device.is_host() : !context.device().is_host();
}

// Calls body(stream) with a GPU's stream or that of its dry run.
template <typename Body>
void on_gpu(const Context& context, const Body& body) {
  dispatch<Operation::mlp>(context, DType::f32, [&]<typename T>(auto stream) {
    if constexpr (std::is_same_v<T, float> && !std::is_same_v<decltype(stream), HostStream>) body(stream);
  });
}

Variable in_one_kernel(Tape& tape, const Variable& x, const Parameters& parameters, const Variable& addend,
                       const kernels::MlpShape& shape, float epsilon) {
  const Context& context = tape.context();
  check_devices<Operation::mlp>(context, x, addend);
  for (const Variable& parameter : parameters) check_devices<Operation::mlp>(context, parameter);
  std::array<const float*, kernels::kMlpParameters> values{};
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].defined()) values[i] = parameters[i].value().data<float>();
  Tensor y = Tensor::empty({shape.rows, shape.out}, DType::f32, context);
  const float* const added = addend.defined() ? addend.value().data<float>() : nullptr;
  const auto tell = [context, shape](std::int64_t products) {
    tell_work(context, {shape.rows, shape.in, shape.hidden, shape.out},
              2 * products * shape.rows * shape.hidden * (shape.in + shape.out));
  };
  on_gpu(context, [&](auto stream) {
    tell(1);
    kernels::mlp({shape, epsilon, values, x.value().data<float>(), added, y.mutable_data<float>()}, stream);
  });
  std::array<Variable, 2 + kernels::kMlpParameters> inputs{x, addend};
  std::copy(parameters.begin(), parameters.end(), inputs.begin() + 2);
  return tape.record(y, inputs, [=](const Tensor& dy) {
    kernels::MlpBackward p{shape, epsilon, values, x.value().data<float>(), dy.data<float>(), {}, {}};
    p.dx = gradient_of<float>(x, context);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      p.dparameters[i] = gradient_of<float>(parameters[i], context);
    on_gpu(context, [&](auto stream) {
      tell(2);
      kernels::mlp_backward(p, stream);
    });
    if (!addend.defined()) return;
    on_gpu(context, [&](auto stream) { pass_on<float>(dy, addend, context, stream); });
  });
}

void require_size(const Variable& vector, std::int64_t size) {
  require(vector.value().size() == size, "mlp: expected a vector of {}, found {}", size,
          ShapeText{vector.value().shape()});
}

}  // namespace

Variable mlp(Tape& tape, const Variable& x, const MlpWeights& w, double epsilon, const Variable& addend) {
  const kernels::MlpShape shape{x.rows(), x.cols(), w.weight1.cols(), w.weight2.cols(),
                                w.norm_weight.defined()};
  require(w.weight1.rows() == shape.in && w.weight2.rows() == shape.hidden,
          "mlp: shapes {}, {}, {} do not fit", ShapeText{x.value().shape()},
          ShapeText{w.weight1.value().shape()}, ShapeText{w.weight2.value().shape()});
  for (const Variable* of_hidden : {&w.bias1, &w.swish_weight, &w.swish_bias})
    require_size(*of_hidden, shape.hidden);
  require_size(w.bias2, shape.out);
  require(w.norm_bias.defined() == shape.is_normalised,
          "mlp: the last norm has a weight and a bias, or neither");
  if (shape.is_normalised) require_size(w.norm_weight, shape.out), require_size(w.norm_bias, shape.out);
  require(!addend.defined() || (addend.rows() == shape.rows && addend.cols() == shape.out),
          "mlp: expected an addend of {} x {}", shape.rows, shape.out);
  // The kernel takes few rows alone, and rounds as no other does.
  const bool one_kernel = is_on_gpu(tape.context()) && !tape.context().row_stable &&
                          x.value().dtype() == DType::f32 && kernels::is_small_mlp(shape);
  if (one_kernel) {
    return in_one_kernel(
        tape, x,
        {w.weight1, w.bias1, w.swish_weight, w.swish_bias, w.weight2, w.bias2, w.norm_weight, w.norm_bias},
        addend, shape, static_cast<float>(epsilon));
  }
  Variable h = linear(tape, x, w.weight1, w.bias1);
  h = swish_layer_norm(tape, h, w.swish_weight, w.swish_bias, epsilon);
  h = linear(tape, h, w.weight2, w.bias2);
  if (w.norm_weight.defined()) h = layer_norm(tape, h, w.norm_weight, w.norm_bias, epsilon);
  return addend.defined() ? add(tape, h, addend) : h;
}

}  // namespace hstu::ops
