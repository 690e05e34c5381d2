// scatter_add of pairs of a position and a row (scatter_add.cu): a position's vector, times the pair's
// weight, is added to the row.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels::cuda {

template <typename T>
struct WeightedSums {
  std::int64_t pairs = 0, columns = 1, width = 0;  // pair i is of position i / columns
  const T* x = nullptr;                            // (pairs / columns, width)
  const T* weights = nullptr;                      // (pairs)
  const std::int32_t* index = nullptr;             // (pairs) the row; negative: none
  std::int64_t count = 0;                          // of rows
  float factor = 1;
  Gradient<T> sums;  // (count, width) of factor * weight * x, in the order of pairs
};
template <typename T>
void add_weighted(const WeightedSums<T>& p, CudaStream stream);

}  // namespace hstu::kernels::cuda
