// Root mean square norm (Zhang and Sennrich, 2019): y = x / sqrt(mean(x^2) + epsilon) * weight, by rows.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct RmsNorm {
  std::int64_t rows = 0, width = 0;
  Accumulator<T> epsilon = 0;
  const T* x = nullptr;                    // (rows, width)
  const Accumulator<T>* weight = nullptr;  // (width)
  T* y = nullptr;                          // (rows, width)
  Accumulator<T>* factor = nullptr;        // (rows) 1 / sqrt(..), kept for the backward pass
};

template <typename T>
struct RmsNormBackward {
  std::int64_t rows = 0, width = 0;
  const T* x = nullptr;  // as in the forward pass, like weight and factor
  const Accumulator<T>* weight = nullptr;
  const Accumulator<T>* factor = nullptr;
  const T* dy = nullptr;             // (rows, width)
  Gradient<T> dx;                    // (rows, width)
  Gradient<Accumulator<T>> dweight;  // (width)
};

template <typename T>
void rms_norm(const RmsNorm<T>& p, HostStream);
template <typename T>
void rms_norm(const RmsNorm<T>& p, CudaStream);
template <typename T>
void rms_norm_backward(const RmsNormBackward<T>& p, HostStream);
template <typename T>
void rms_norm_backward(const RmsNormBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
