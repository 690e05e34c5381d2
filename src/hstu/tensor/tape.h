// The record of a forward pass that is replayed backwards.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "hstu/tensor/parameter.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// Where a backward pass puts its result: gradient = result + beta * gradient.
struct GradientSlot {
  Tensor tensor;  // uninitialised while accumulate is false
  bool accumulate = false;

  template <typename T>
  T beta() const {
    return accumulate ? T(1) : T(0);
  }
  template <typename T>
  T* data() const {
    return tensor.data<T>();
  }
};

// A value of the forward pass and the gradient that later arrives for it. Copies are the same variable.
class Variable {
 public:
  Variable() = default;
  // A value computed by an op, or a leaf whose gradient is wanted.
  explicit Variable(Tensor value, bool needs_gradient = true);
  // A parameter: backward passes add to parameter.gradient.
  explicit Variable(const Parameter& parameter);
  static Variable constant(Tensor value) { return Variable(std::move(value), false); }

  bool defined() const { return state_ != nullptr; }
  const Tensor& value() const { return state_->value; }
  std::int64_t rows() const { return value().rows(); }
  std::int64_t cols() const { return value().cols(); }
  bool needs_gradient() const { return state_->needs_gradient; }

  // For a backward pass: the slot to write to. The first writer overwrites, later ones add.
  GradientSlot gradient_slot() const;
  // The gradient that arrived; undefined when none did.
  const Tensor& gradient() const { return state_->gradient; }
  bool has_gradient() const { return state_->has_gradient; }

 private:
  struct State {
    Tensor value, gradient;
    bool needs_gradient = false, has_gradient = false;
  };
  std::shared_ptr<State> state_;
};

class Tape {
 public:
  // recording = false: a forward pass only; ops keep nothing.
  explicit Tape(bool recording = true) : recording_(recording) {}

  // For ops: runs `backward` when the tape is replayed, if the result got a gradient.
  template <typename Backward>
  void record(const Variable& result, Backward backward) {
    if (recording_ && result.needs_gradient()) steps_.push_back({result, std::move(backward)});
  }
  bool recording() const { return recording_; }

  // Replays the record from `result`, whose gradient is `gradient` (same shape and type). What the forward
  // pass kept is released on the way; a tape is replayed once.
  void backward(const Variable& result, const Tensor& gradient);
  // The same from a result of one element (a loss), whose gradient is 1.
  void backward(const Variable& result);

 private:
  struct Step {
    Variable result;
    std::function<void(const Tensor& gradient)> backward;
  };
  bool recording_;
  std::vector<Step> steps_;
};

}  // namespace hstu
