// Where a backward kernel puts a gradient: the same in all of them.
#pragma once

#include <cstdint>

namespace hstu::kernels {

template <typename T>
struct Gradient {
  T* to = nullptr;          // nullptr: nobody wants it
  bool accumulate = false;  // add to what `to` holds; otherwise overwrite it, whatever it holds
};

// The same, `offset` elements further on.
template <typename T>
Gradient<T> operator+(const Gradient<T>& gradient, std::int64_t offset) {
  return {gradient.to == nullptr ? nullptr : gradient.to + offset, gradient.accumulate};
}

}  // namespace hstu::kernels
