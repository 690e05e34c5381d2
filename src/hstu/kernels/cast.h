// Conversion of constants to another element type.
#pragma once

#include <cstdint>

#include "hstu/device/stream.h"

namespace hstu::kernels {

// y = x, rounded to nearest.
template <typename T>
struct Cast {
  std::int64_t size = 0;
  const double* x = nullptr;
  T* y = nullptr;
};

// y = value, rounded to nearest.
template <typename T>
struct Fill {
  std::int64_t size = 0;
  double value = 0;
  T* y = nullptr;
};

template <typename T>
void fill(const Fill<T>& p, HostStream);
template <typename T>
void fill(const Fill<T>& p, CudaStream);

template <typename T>
void cast(const Cast<T>& p, HostStream);
template <typename T>
void cast(const Cast<T>& p, CudaStream);

}  // namespace hstu::kernels
