// Some rows of a matrix, each to a place among the rows of another.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"

namespace hstu::kernels {

// y[to[i]] = x[from[i]]. No two places are the same.
template <typename T>
struct CopyRows {
  std::int64_t rows = 0, width = 0;
  const T* x = nullptr;  // rows of `width`, x_stride apart
  std::int64_t x_stride = 0;
  const std::int32_t* from = nullptr;  // (rows)
  const std::int64_t* to = nullptr;    // (rows)
  T* y = nullptr;                      // rows of `width`
};

template <typename T>
void copy_rows(const CopyRows<T>& p, HostStream);
template <typename T>
void copy_rows(const CopyRows<T>& p, CudaStream);

}  // namespace hstu::kernels
