#include "hstu/model/activated_mlp.h"

#include <utility>

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

Variable ActivatedMlp::operator()(Tape& tape, Variable x) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Variable weight = ops::weight(tape, layers_[i].weight, x.value().dtype());
    x = ops::linear(tape, x, weight, Variable(layers_[i].bias));
    if (i + 1 < layers_.size()) x = ops::activate(tape, x, activation_);
  }
  return x;
}

}  // namespace hstu
