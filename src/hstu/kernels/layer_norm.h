// Layer normalisation over the last dimension, and its swish form. Biased variance, computed in two passes.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct LayerNormForward {
  std::int64_t rows = 0, width = 0;
  Accumulator<T> epsilon = 0;
  const T* x = nullptr;                    // (rows, width)
  const Accumulator<T>* weight = nullptr;  // (width)
  const Accumulator<T>* bias = nullptr;    // (width)
  T* y = nullptr;                          // (rows, width)
  Accumulator<T>* mean = nullptr;          // (rows) kept for the backward pass
  Accumulator<T>* rstd = nullptr;          // (rows) 1 / sqrt(variance + epsilon)
};

template <typename T>
struct LayerNormBackward {
  std::int64_t rows = 0, width = 0;
  const T* x = nullptr;  // as in the forward pass, like weight and bias (only the swish form reads bias)
  const Accumulator<T>*weight = nullptr, *bias = nullptr;
  const Accumulator<T>*mean = nullptr, *rstd = nullptr;  // (rows)
  const T* dy = nullptr;                                 // (rows, width)
  Gradient<T> dx;                                        // (rows, width)
  Gradient<Accumulator<T>> dweight, dbias;               // (width)
};

// y = (x - mean) * rstd * weight + bias
template <typename T>
void layer_norm(const LayerNormForward<T>& p, HostStream);
template <typename T>
void layer_norm(const LayerNormForward<T>& p, CudaStream);
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, HostStream);
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, CudaStream);

// y = x * sigmoid(layer_norm(x)): x itself is not normalised.
template <typename T>
void swish_layer_norm(const LayerNormForward<T>& p, HostStream);
template <typename T>
void swish_layer_norm(const LayerNormForward<T>& p, CudaStream);
template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p, HostStream);
template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
