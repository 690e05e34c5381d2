// The gate of an HSTU layer: cat = [drop(silu(u)), drop(o), drop(silu(u) * layer_norm(o))] with three
// independent masks. Source: "Actions Speak Louder than Words", section 3 (the pointwise transformation), in
// the form of DLRMv4.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct GateForward {
  std::int64_t rows = 0, width = 0;  // width = H * D
  Accumulator<T> epsilon = 0;
  const T* u = nullptr;                                    // (rows, width) before its activation
  const T* o = nullptr;                                    // (rows, width) attention output
  const Accumulator<T>*weight = nullptr, *bias = nullptr;  // (width) of the layer norm
  T* cat = nullptr;                                        // (rows, 3 * width)
  Accumulator<T>*mean = nullptr, *rstd = nullptr;          // (rows) kept for the backward pass
  Dropout dropout;                                         // of the rows of cat
};

template <typename T>
struct GateBackward {
  std::int64_t rows = 0, width = 0;
  const T *u = nullptr, *o = nullptr;  // as in the forward pass, like weight, bias and dropout
  const Accumulator<T>*weight = nullptr, *bias = nullptr;
  const Accumulator<T>*mean = nullptr, *rstd = nullptr;
  const T* dcat = nullptr;                  // (rows, 3 * width)
  Gradient<T> du, d_o;                      // (rows, width)
  Gradient<Accumulator<T>> dweight, dbias;  // (width)
  Dropout dropout;
};

template <typename T>
void gate(const GateForward<T>& p, HostStream);
template <typename T>
void gate(const GateForward<T>& p, CudaStream);
template <typename T>
void gate_backward(const GateBackward<T>& p, HostStream);
template <typename T>
void gate_backward(const GateBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
