// The gate of an HSTU layer: cat = [drop(silu(u)), drop(o), drop(silu(u) * layer_norm(o))] with three
// independent masks. Source: "Actions Speak Louder than Words", section 3 (the pointwise transformation), in
// the form of DLRMv4.
#pragma once

#include <cstdint>

#include "hstu/kernels/dropout.h"

namespace hstu::kernels {

template <typename T>
struct GateForward {
  std::int64_t rows, width;  // width = H * D
  T epsilon;
  const T* u;              // (rows, width) before its activation
  const T* o;              // (rows, width) attention output
  const T *weight, *bias;  // (width) of the layer norm
  T* cat;                  // (rows, 3 * width)
  T *mean, *rstd;          // (rows) kept for the backward pass
  Dropout dropout;         // element index: position in cat
};

template <typename T>
struct GateBackward {
  std::int64_t rows, width;
  const T *u, *o, *weight, *bias;
  const T *mean, *rstd;
  const T* dcat;  // (rows, 3 * width)
  T* du;          // (rows, width) = result + beta_du * du; likewise d_o
  T* d_o;
  T beta_du, beta_do;
  T *dweight, *dbias;  // (width): results are added
  Dropout dropout;
};

template <typename T>
void gate(const GateForward<T>& p);
template <typename T>
void gate_backward(const GateBackward<T>& p);

}  // namespace hstu::kernels
