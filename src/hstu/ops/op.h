// What every op needs: element types to code, results to variables.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hstu/base/threads.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// Calls body.template operator()<float or double>() for the tensor's type.
template <typename Body>
void dispatch(DType type, const Body& body) {
  if (type == DType::f32) return body.template operator()<float>();
  if (type == DType::f64) return body.template operator()<double>();
  require(false, "expected f32 or f64, found {}", to_string(type));
}

// body(begin, end) over the elements of a tensor, in parallel.
template <typename Body>
void for_elements(std::int64_t size, const Body& body) {
  parallel_blocks(size, std::int64_t{1} << 14, body);
}

// Passes a gradient on as it is: the first to arrive is copied, later ones are added.
template <typename T>
void pass_gradient(const T* gradient, const Variable& to) {
  if (!to.needs_gradient()) return;
  GradientSlot slot = to.gradient_slot();
  T* const out = slot.data<T>();
  for_elements(slot.tensor.size(), [&](std::int64_t begin, std::int64_t end) {
    if (slot.accumulate) {
      for (std::int64_t i = begin; i < end; ++i) out[i] += gradient[i];
    } else {
      std::copy(gradient + begin, gradient + end, out + begin);
    }
  });
}

// The gradient slot of a parameter-like input whose kernel only adds: zeroed when nothing arrived before.
inline Tensor added_gradient(const Variable& variable) {
  GradientSlot slot = variable.gradient_slot();
  if (!slot.accumulate) slot.tensor.fill_zero();
  return slot.tensor;
}

}  // namespace hstu::ops
