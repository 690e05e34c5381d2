// Layer normalisation over the last dimension, and the swish form of it. Biased variance, computed in two
// passes.
#pragma once

#include <cstdint>

namespace hstu::kernels {

template <typename T>
struct LayerNormForward {
  std::int64_t rows, width;
  T epsilon;
  const T* x;       // (rows, width)
  const T* weight;  // (width)
  const T* bias;    // (width)
  T* y;             // (rows, width)
  T* mean;          // (rows) kept for the backward pass
  T* rstd;          // (rows) 1 / sqrt(variance + epsilon)
};

template <typename T>
struct LayerNormBackward {
  std::int64_t rows, width;
  const T *x, *weight, *bias;  // as in the forward pass (the bias is read by the swish form only)
  const T *mean, *rstd;        // (rows)
  const T* dy;                 // (rows, width)
  T* dx;                       // (rows, width) = result + beta_dx * dx
  T beta_dx;
  T* dweight;  // (width), dbias (width): results are added
  T* dbias;
};

// y = (x - mean) * rstd * weight + bias
template <typename T>
void layer_norm(const LayerNormForward<T>& p);
template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p);

// y = x * sigmoid(layer_norm(x)): x itself is not normalised.
template <typename T>
void swish_layer_norm(const LayerNormForward<T>& p);
template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p);

}  // namespace hstu::kernels
