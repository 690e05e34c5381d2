// What every op needs: element types to code, results to variables.
#pragma once

#include <initializer_list>

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// Calls body.template operator()<float or double>() for the tensor's type.
template <typename Body>
void dispatch(DType type, const Body& body) {
  if (type == DType::f32) return body.template operator()<float>();
  if (type == DType::f64) return body.template operator()<double>();
  require(false, "expected f32 or f64, found {}", to_string(type));
}

// The result of an op on `inputs`: it needs a gradient when the tape records and an input does.
inline Variable result_of(const Tape& tape, Tensor value, std::initializer_list<Variable> inputs) {
  bool needs_gradient = false;
  for (const Variable& input : inputs) needs_gradient |= input.defined() && input.needs_gradient();
  return Variable(std::move(value), tape.recording() && needs_gradient);
}

// The gradient slot of a parameter-like input whose kernel only adds: zeroed when nothing arrived before.
inline Tensor added_gradient(const Variable& variable) {
  const GradientSlot slot = variable.gradient_slot();
  if (!slot.accumulate) slot.tensor.fill_zero();
  return slot.tensor;
}

}  // namespace hstu::ops
