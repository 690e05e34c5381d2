// Integers that become larger by one number: places in a list of which others have the beginning.
#pragma once

#include <cstdint>

#include "hstu/device/stream.h"

namespace hstu::kernels {

// y = x + by. T: std::int32_t or std::int64_t.
template <typename T>
struct Shift {
  std::int64_t size = 0;
  const T* x = nullptr;
  T by = 0;
  T* y = nullptr;
};

template <typename T>
void shift(const Shift<T>& p, HostStream);
template <typename T>
void shift(const Shift<T>& p, CudaStream);

}  // namespace hstu::kernels
