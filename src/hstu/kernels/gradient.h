// The destination of a gradient, for all backward kernels.
#pragma once

#include <cstdint>

namespace hstu::kernels {

template <typename T>
struct Gradient {
  T* to = nullptr;          // nullptr: not needed
  bool accumulate = false;  // true: add to `to`; false: overwrite it, whatever it contains
  bool late = false;        // of a parameter: nothing reads it before the backward pass has ended
};

// The same, shifted by `offset` elements.
template <typename T>
Gradient<T> operator+(const Gradient<T>& gradient, std::int64_t offset) {
  return {gradient.to == nullptr ? nullptr : gradient.to + offset, gradient.accumulate, gradient.late};
}

}  // namespace hstu::kernels
