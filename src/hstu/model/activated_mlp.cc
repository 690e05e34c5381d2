#include "hstu/model/activated_mlp.h"

#include "hstu/ops/convert.h"
#include "hstu/ops/linear.h"

namespace hstu {

ActivatedMlp::ActivatedMlp(ParameterSet& set, const std::string& name,
                           const std::vector<std::int64_t>& widths, ops::Activation activation)
    : activation_(activation) {
  require(widths.size() >= 2, "{}: expected at least an input and an output width", name);
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    layers_.push_back(add_linear(set, fmt::format("{}.{}", name, i), widths[i], widths[i + 1],
                                 Initializer::xavier_uniform(widths[i], widths[i + 1])));
  }
}

Variable ActivatedMlp::operator()(Tape& tape, const Variable& x) const {
  const auto weight_of = [&, type = x.value().dtype()](const LinearParameters& layer) {
    return ops::weight(tape, layer.weight, type);
  };
  ops::LinearInput h = x;
  for (std::size_t i = 0; i + 1 < layers_.size(); ++i) {
    const Variable weight = weight_of(layers_[i]), bias(layers_[i].bias);
    if (activation_ == ops::Activation::relu)
      h = ops::linear_relu(tape, h, weight, bias);
    else if (activation_ == ops::Activation::gelu)
      h = ops::linear_gelu(tape, h, weight, bias);
    else
      h = ops::activate(tape, ops::linear(tape, h, weight, bias), activation_);
  }
  return ops::linear(tape, h, weight_of(layers_.back()), Variable(layers_.back().bias));
}

}  // namespace hstu
