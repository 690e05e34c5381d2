#pragma once
#include "hstu/kernels/dropout.h"
#include "hstu/tensor/tensor.h"
namespace hstu::ops {
struct Dropout {
  double rate = 0;
  std::uint64_t key = 0;
  Tensor row_names = {};
  operator kernels::Dropout() const { return {rate, key}; }
};
}
