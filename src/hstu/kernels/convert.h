// Elements between float and bfloat16.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

// y = or += x, rounded to nearest even.
template <typename From, typename To>
struct Convert {
  std::int64_t size = 0;
  const From* x = nullptr;
  Gradient<To> y;
};

template <typename From, typename To>
void convert(const Convert<From, To>& p, HostStream);
template <typename From, typename To>
void convert(const Convert<From, To>& p, CudaStream);

}  // namespace hstu::kernels
