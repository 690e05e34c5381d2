#include "hstu/tensor/tape.h"

#include <algorithm>

namespace hstu {

Variable::Variable(Tensor value, bool needs_gradient) : state_(std::make_shared<State>()) {
  state_->value = std::move(value);
  state_->needs_gradient = needs_gradient;
}

Variable::Variable(const Parameter& parameter) : Variable(parameter, parameter.value) {}

Variable::Variable(const Parameter& parameter, Tensor value) : Variable(std::move(value), true) {
  state_->gradient = parameter.gradient;
  state_->parameter = &parameter;
  state_->has_gradient = true;
}

GradientSlot Variable::gradient_slot(const Context& context) const {
  require(state_->written.empty(), "a gradient of {} lacks columns", to_string(value().shape()));
  if (!state_->gradient.defined()) {
    state_->gradient = Tensor::empty(value().shape(), value().dtype(), context);
  }
  return {state_->gradient, std::exchange(state_->has_gradient, true)};
}

GradientSlot Variable::gradient_columns(ColumnRange columns, const Context& context) const {
  if (state_->has_gradient || columns == ColumnRange{0, cols()}) return gradient_slot(context);
  if (!state_->gradient.defined()) {
    state_->gradient = Tensor::empty(value().shape(), value().dtype(), context);
  }
  std::vector<ColumnRange>& written = state_->written;
  const bool again = std::find(written.begin(), written.end(), columns) != written.end();
  if (!again) {
    std::int64_t width = columns.width();
    for (const ColumnRange& other : written) {
      require(columns.end <= other.begin || other.end <= columns.begin,
              "columns [{}, {}) and [{}, {}) of a gradient overlap", columns.begin, columns.end, other.begin,
              other.end);
      width += other.width();
    }
    written.push_back(columns);
    if (width == cols()) {
      state_->has_gradient = true;
      written.clear();
    }
  }
  return {state_->gradient, again};
}

bool Tape::any_needs_gradient(const std::vector<Variable>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Variable& input) { return input.defined() && input.needs_gradient(); });
}

void Tape::push(const Variable& result, const std::vector<Variable>& inputs, Backward backward) {
  Step step{result, std::move(backward), {}};
  for (const Variable& input : inputs) {
    if (!input.defined() || input.parameter() == nullptr) continue;
    step.parameters.push_back(input.parameter());
    ++uses_[input.parameter()];
  }
  steps_.push_back(std::move(step));
}

// The step adds to no gradient any more.
void Tape::settle(const Step& step) {
  for (const Parameter* const parameter : step.parameters) {
    if (--uses_[parameter] == 0 && on_final_) on_final_(*parameter);
  }
}

void Tape::backward(const Variable& result) {
  require(result.value().size() == 1, "backward: expected a loss of one element, found {}",
          to_string(result.value().shape()));
  const Tensor one =
      result.value().dtype() == DType::f64 ? Tensor::from<double>({1}, {1}) : Tensor::from<float>({1}, {1});
  backward(result, one);
}

void Tape::backward(const Variable& result, const Tensor& gradient) {
  require(recording_, "backward on a tape that did not record");
  result.gradient_slot(context_).tensor.copy_from(gradient.reshaped(result.value().shape()), context_.stream);
  while (!steps_.empty()) {
    const Step step = std::move(steps_.back());
    steps_.pop_back();
    if (step.result.has_gradient()) step.backward(step.result.state_->gradient);
    require(step.result.state_->written.empty(), "a gradient of {} lacks columns",
            to_string(step.result.value().shape()));
    settle(step);
  }
}

}  // namespace hstu
