// The record of a forward pass that is replayed backwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hstu/base/column_range.h"
#include "hstu/tensor/context.h"
#include "hstu/tensor/parameter.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// (1), on the host: the gradient of a loss of this type, f32 or f64.
Tensor gradient_of_loss(DType type);

// Where a backward pass puts its result: added to `tensor`, or to columns of it, with `accumulate`; written
// over them without.
struct GradientSlot {
  Tensor tensor;  // uninitialised while accumulate is false
  bool accumulate = false;
};

// What an operation reads and writes, for Trace::touches_bytes.
struct MovedBytes {
  std::int64_t forward = 0, backward = 0;
};

// A value of the forward pass and the gradient that later arrives for it. Copies are the same variable.
class Variable {
 public:
  Variable() = default;
  // A value computed by an op, or a leaf whose gradient is wanted.
  explicit Variable(Tensor value, bool needs_gradient = true);
  // A parameter, which outlives the variable: backward passes add to parameter.gradient.
  explicit Variable(const Parameter& parameter);
  // The same with its value in another type; the gradient is parameter.gradient all the same.
  Variable(const Parameter& parameter, Tensor value);
  static Variable constant(Tensor value) { return Variable(std::move(value), false); }

  bool defined() const { return state_ != nullptr; }
  const Tensor& value() const {
    if (!state_->value.defined() && state_->recompute) state_->value = state_->recompute();
    return state_->value;
  }
  std::int64_t rows() const { return value().rows(); }
  std::int64_t cols() const { return value().cols(); }
  bool needs_gradient() const { return state_->needs_gradient; }
  // The parameter whose value this is; nullptr for all others.
  const Parameter* parameter() const { return state_->parameter; }

  // For a backward pass: the slot to write to, in memory of `context`. The first writer overwrites, later
  // ones add.
  GradientSlot gradient_slot(const Context& context = host_context()) const;
  // The same for an operation that writes these columns alone. Others write the rest: a gradient of which
  // some columns were written and others were not is a defect, and ranges are the same or have no column in
  // common.
  GradientSlot gradient_columns(ColumnRange columns, const Context& context = host_context()) const;
  // For ops: how the value is computed once more, with the same bits, from what the backward pass keeps
  // anyway.
  void recomputed_by(std::function<Tensor()> recompute) const { state_->recompute = std::move(recompute); }
  // Frees the value until it is read again, if its operation can recompute it.
  void drop_value() const {
    if (state_->recompute) state_->value = Tensor();
  }
  // The first gradient to arrive may be the memory of one that its owner does not need any more. Returns
  // whether it was taken: not if another has arrived before.
  bool take_gradient(const Tensor& gradient) const;
  // The gradient that arrived; undefined when none did.
  const Tensor& gradient() const { return state_->gradient; }
  bool has_gradient() const { return state_->has_gradient; }

 private:
  friend class Tape;
  struct State {
    Tensor value, gradient;
    std::function<Tensor()> recompute;
    const Parameter* parameter = nullptr;
    bool needs_gradient = false, has_gradient = false;
    std::vector<ColumnRange> written;  // of a gradient that has some of its columns
  };
  std::shared_ptr<State> state_;
};

class Tape {
 public:
  // recording = false: a forward pass only; ops keep nothing.
  explicit Tape(bool recording = true) : Tape(host_context(), recording) {}
  explicit Tape(Context context, bool recording = true)
      : context_(std::move(context)), recording_(recording) {}
  Tape(const Tape&) = delete;  // what recompute() keeps records on this tape
  Tape& operator=(const Tape&) = delete;

  // Where ops compute and where their results are.
  const Context& context() const { return context_; }
  bool recording() const { return recording_; }

  // For ops: the result of an operation on `inputs` (undefined ones are passed over). When the tape is
  // replayed and a gradient has arrived for the result, `backward` gets it (a Tensor&, which it may
  // overwrite) and writes to the gradient slots of the inputs, last use first. `moved`: for an operation
  // that does not touch each operand once, such as one that takes some columns of an input.
  template <typename Backward>
  Variable record(Tensor value, std::span<const Variable> inputs, Backward backward,
                  const std::optional<MovedBytes>& moved = {}) {
    Variable result(std::move(value), recording_ && any_needs_gradient(inputs));
    MovedBytes bytes;
    if (context_.trace != nullptr) {
      bytes = moved ? *moved : bytes_of(result, inputs);
      context_.trace->touches_bytes(bytes.forward);
    }
    if (result.needs_gradient()) push(result, inputs, std::move(backward), bytes.backward);
    return result;
  }
  template <typename Backward>
  Variable record(Tensor value, std::initializer_list<Variable> inputs, Backward backward,
                  const std::optional<MovedBytes>& moved = {}) {
    return record(std::move(value), std::span(inputs.begin(), inputs.size()), std::move(backward), moved);
  }

  // The result of `compute`, whose operations are forgotten: the backward pass calls it again and replays
  // what that records (gradient checkpointing). `compute` records on this tape alone, returns the result of
  // its last operation, and gives the same bits each time; what it holds is kept until then.
  Variable recompute(std::function<Variable()> compute);

  // Replays the record from `result`, whose gradient is `gradient` (same size and type; it may be on the
  // host). What the forward pass kept is released on the way; a tape is replayed once.
  void backward(const Variable& result, const Tensor& gradient);
  // The same without a copy of a gradient on the tape's device, which operations may overwrite.
  void backward(const Variable& result, Tensor&& gradient);
  // The same from a result of one element (a loss), whose gradient is 1.
  void backward(const Variable& result);

  // `callback` is called during backward() for each parameter that a recorded operation uses, once, as soon
  // as no operation is left that could add to its gradient: on the host the gradient is then final, on a GPU
  // the stream holds all work that makes it. The order follows the record, last use first.
  void on_final(std::function<void(const Parameter&)> callback) { on_final_ = std::move(callback); }

  // Names the stage of the model to which the operations from now on belong, and returns the stage before.
  // `name` is a literal; "": none. The context's trace sees a stage as a range, in both passes. See
  // StageRange.
  std::string_view enter_stage(std::string_view name);

 private:
  using Backward = std::function<void(Tensor& gradient)>;
  struct Step {
    Variable result;
    Backward backward;
    std::size_t first_parameter, end_parameter;  // among the inputs: in parameters_
    std::string_view stage;
    std::int64_t bytes;  // that the backward pass moves; 0 without a trace
  };
  static bool any_needs_gradient(std::span<const Variable> inputs);
  static MovedBytes bytes_of(const Variable& result, std::span<const Variable> inputs);
  void push(const Variable& result, std::span<const Variable> inputs, Backward backward,
            std::int64_t backward_bytes);
  void settle(const Step& step);
  void replay();

  Context context_;
  bool recording_;
  std::vector<Step> steps_;
  std::vector<const Parameter*> parameters_;  // of all steps, in their order
  std::function<void(const Parameter&)> on_final_;
  bool counts_uses_ = false;  // of parameters by the steps that are left: from backward() on, for on_final_
  std::unordered_map<const Parameter*, std::int64_t> uses_;
  std::string_view stage_;
};

// A stage of the model (Tape::enter_stage) until the end of the scope, then again the stage before.
class StageRange {
 public:
  StageRange(Tape& tape, std::string_view name) : tape_(tape), before_(tape.enter_stage(name)) {}
  ~StageRange() { tape_.enter_stage(before_); }
  StageRange(const StageRange&) = delete;
  StageRange& operator=(const StageRange&) = delete;

  void next(std::string_view name) { tape_.enter_stage(name); }  // the stage that follows

 private:
  Tape& tape_;
  std::string_view before_;
};

}  // namespace hstu
