#include "hstu/tensor/tape.h"

#include <algorithm>

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
  require(recording_, "backward on a tape that did not record");
  const GradientSlot seed = result.gradient_slot();
  const auto fill_ones = [&]<typename T>(T*) { std::fill_n(seed.data<T>(), seed.tensor.size(), T(1)); };
  if (result.value().dtype() == DType::f64) {
    fill_ones(static_cast<double*>(nullptr));
  } else {
    fill_ones(static_cast<float*>(nullptr));
  }
  while (!steps_.empty()) {
    const Step step = std::move(steps_.back());
    steps_.pop_back();
    if (step.result.has_gradient()) step.backward(step.result.gradient());
  }
}

}  // namespace hstu
