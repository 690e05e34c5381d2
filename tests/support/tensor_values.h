// The elements of a tensor of the host, to compare.
#pragma once

#include <vector>

#include "hstu/tensor/tensor.h"

namespace hstu::testing {

template <typename T>
std::vector<T> values_of(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.size()};
}

}  // namespace hstu::testing
