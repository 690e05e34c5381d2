// Each row divided by its Euclidean norm: y = x / max(|x|, epsilon). Rows shorter than epsilon are divided by
// epsilon, so a row of zeros stays zeros and has a finite gradient.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct L2Normalise {
  std::int64_t rows = 0, width = 0;
  Accumulator<T> epsilon = 0;
  const T* x = nullptr;            // (rows, width)
  T* y = nullptr;                  // (rows, width)
  Accumulator<T>* norm = nullptr;  // (rows) |x|, kept for the backward pass
};

template <typename T>
struct L2NormaliseBackward {
  std::int64_t rows = 0, width = 0;
  Accumulator<T> epsilon = 0;
  const T* x = nullptr;                  // (rows, width) as in the forward pass
  const Accumulator<T>* norm = nullptr;  // (rows)
  const T* dy = nullptr;                 // (rows, width)
  Gradient<T> dx;                        // (rows, width)
};

template <typename T>
void l2_normalise(const L2Normalise<T>& p, HostStream);
template <typename T>
void l2_normalise(const L2Normalise<T>& p, CudaStream);
// With n = x / |x|: dx = (dy - n (n . dy)) / |x|; dy / epsilon for a row shorter than epsilon.
template <typename T>
void l2_normalise_backward(const L2NormaliseBackward<T>& p, HostStream);
template <typename T>
void l2_normalise_backward(const L2NormaliseBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
