#include "hstu/tensor/tape.h"

#include <cstring>

namespace hstu {

Variable::Variable(Tensor value, bool needs_gradient) : state_(std::make_shared<State>()) {
  state_->value = std::move(value);
  state_->needs_gradient = needs_gradient;
}

Variable::Variable(const Parameter& parameter) : Variable(parameter.value, true) {
  state_->gradient = parameter.gradient;
  state_->has_gradient = true;
}

GradientSlot Variable::gradient_slot() const {
  if (!state_->gradient.defined()) state_->gradient = Tensor::empty(value().shape(), value().dtype());
  return {state_->gradient, std::exchange(state_->has_gradient, true)};
}

void Tape::backward(const Variable& result) {
  require(result.value().size() == 1, "backward: expected a loss of one element, found {}",
          to_string(result.value().shape()));
  const DType type = result.value().dtype();
  backward(result, type == DType::f64 ? Tensor::from<double>({1}, {1}) : Tensor::from<float>({1}, {1}));
}

void Tape::backward(const Variable& result, const Tensor& gradient) {
  require(recording_, "backward on a tape that did not record");
  require(gradient.size() == result.value().size() && gradient.dtype() == result.value().dtype(),
          "backward: expected a gradient of shape {}, found {}", to_string(result.value().shape()),
          to_string(gradient.shape()));
  std::memcpy(result.gradient_slot().tensor.raw(), gradient.raw(), gradient.bytes());
  while (!steps_.empty()) {
    const Step step = std::move(steps_.back());
    steps_.pop_back();
    if (step.result.has_gradient()) step.backward(step.result.gradient());
  }
}

}  // namespace hstu
