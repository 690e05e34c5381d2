#include "hstu/tensor/tape.h"

#include <algorithm>

#include "hstu/base/contains.h"

namespace hstu {

Tensor gradient_of_loss(DType type) {
  return type == DType::f64 ? Tensor::from<double>({1}, {1}) : Tensor::from<float>({1}, {1});
}

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
  require(state_->written.empty(), "a gradient of {} lacks columns", ShapeText{value().shape()});
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
  const bool again = contains(written, columns);
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

bool Variable::take_gradient(const Tensor& gradient) const {
  if (state_->gradient.defined() || !state_->written.empty()) return false;
  state_->gradient = gradient;
  state_->has_gradient = true;
  return true;
}

bool Tape::any_needs_gradient(std::span<const Variable> inputs) {
  return std::any_of(inputs.begin(), inputs.end(),
                     [](const Variable& input) { return input.defined() && input.needs_gradient(); });
}

// Every operand once: an estimate for operations that read some rows of an input, or none in one of the
// passes. Backward: the result's gradient, and every input with the gradient that it gets.
MovedBytes Tape::bytes_of(const Variable& result, std::span<const Variable> inputs) {
  std::size_t forward = result.value().bytes(), gradients = 0;
  for (const Variable& input : inputs) {
    if (!input.defined()) continue;
    forward += input.value().bytes();
    if (input.parameter() != nullptr)
      gradients += input.gradient().bytes();
    else if (input.needs_gradient())
      gradients += input.value().bytes();
  }
  return {static_cast<std::int64_t>(forward), static_cast<std::int64_t>(forward + gradients)};
}

std::string_view Tape::enter_stage(std::string_view name) {
  const std::string_view before = std::exchange(stage_, name);
  if (context_.trace == nullptr || before == name) return before;
  if (!before.empty()) context_.trace->end();
  if (!name.empty()) context_.trace->begin(name);
  return before;
}

void Tape::push(const Variable& result, std::span<const Variable> inputs, Backward backward,
                std::int64_t backward_bytes) {
  Step step{.result = result,
            .backward = std::move(backward),
            .first_parameter = parameters_.size(),
            .end_parameter = 0,
            .stage = stage_,
            .bytes = backward_bytes};
  for (const Variable& input : inputs) {
    if (!input.defined() || input.parameter() == nullptr) continue;
    parameters_.push_back(input.parameter());
    if (counts_uses_) ++uses_[input.parameter()];
  }
  step.end_parameter = parameters_.size();
  steps_.push_back(std::move(step));
}

// One step takes the place of those of `compute`. As it has their parameters, none of these is final before
// the steps that it brings back are replayed.
Variable Tape::recompute(std::function<Variable()> compute) {
  const std::size_t before = steps_.size();
  Variable computed = compute();
  if (steps_.size() == before) return computed;
  Step step{.result = Variable(computed.value(), computed.needs_gradient()),
            .backward =
                [compute = std::move(compute)](const Tensor& gradient) {
                  const bool taken = compute().take_gradient(gradient);
                  require(taken, "recompute: expected the result of an operation inside");
                },
            .first_parameter = steps_[before].first_parameter,
            .end_parameter = parameters_.size(),
            .stage = stage_,
            .bytes = 0};
  steps_.resize(before);
  steps_.push_back(std::move(step));
  return steps_.back().result;
}

// The step adds to no gradient any more.
void Tape::settle(const Step& step) {
  if (!counts_uses_) return;
  for (std::size_t i = step.first_parameter; i < step.end_parameter; ++i)
    if (--uses_[parameters_[i]] == 0) on_final_(*parameters_[i]);
}

void Tape::backward(const Variable& result) {
  require(result.value().size() == 1, "backward: expected a loss of one element, found {}",
          ShapeText{result.value().shape()});
  backward(result, gradient_of_loss(result.value().dtype()));
}

void Tape::backward(const Variable& result, const Tensor& gradient) {
  require(recording_, "backward on a tape that did not record");
  result.gradient_slot(context_).tensor.copy_from(gradient.reshaped(result.value().shape()), context_.stream);
  replay();
}

void Tape::backward(const Variable& result, Tensor&& gradient) {
  require(recording_, "backward on a tape that did not record");
  const Tensor taken = std::move(gradient).reshaped(result.value().shape());
  const bool same_kind = taken.device() == context_.device() && taken.dtype() == result.value().dtype();
  if (!same_kind || !result.take_gradient(taken)) return backward(result, taken);
  replay();
}

void Tape::replay() {
  StageRange stage(*this, stage_);
  counts_uses_ = on_final_ != nullptr;
  if (counts_uses_)
    for (const Parameter* const parameter : parameters_) ++uses_[parameter];
  while (!steps_.empty()) {
    const Step step = std::move(steps_.back());
    steps_.pop_back();
    if (step.result.has_gradient()) {
      stage.next(step.stage);
      if (context_.trace != nullptr) context_.trace->touches_bytes(step.bytes);
      step.backward(step.result.state_->gradient);
    }
    require(step.result.state_->written.empty(), "a gradient of {} lacks columns",
            ShapeText{step.result.value().shape()});
    settle(step);
  }
  context_.stream.launch_late();
}

}  // namespace hstu
