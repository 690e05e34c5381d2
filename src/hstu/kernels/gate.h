// The gate of an HSTU layer, in two forms. Source: "Actions Speak Louder than Words", section 3 (the
// pointwise transformation).
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

enum class GateForm {
  concat,   // y = [drop(silu(u)), drop(o), drop(silu(u) * layer_norm(o))] with three independent masks
            // (DLRMv4)
  product,  // y = drop(silu(u) * layer_norm(o)) (NVIDIA)
};
inline constexpr Choice<GateForm> kGateForms[] = {{"concat", GateForm::concat},
                                                  {"product", GateForm::product}};
// The width of y, in widths of u.
[[gnu::always_inline]] constexpr std::int64_t gate_parts(GateForm form) {
  return form == GateForm::concat ? 3 : 1;
}

template <typename T>
struct GateForward {
  GateForm form = GateForm::concat;
  std::int64_t rows = 0, width = 0;  // width = H * D
  Accumulator<T> epsilon = 0;
  const T* u = nullptr;  // (rows, width)
  std::int64_t u_stride = 0;
  const T* o = nullptr;                                    // (rows, width) attention output
  const Accumulator<T>*weight = nullptr, *bias = nullptr;  // (width) of the layer norm
  T* y = nullptr;                                          // (rows, parts * width)
  Accumulator<T>*mean = nullptr, *rstd = nullptr;          // (rows) kept for the backward pass
  Dropout dropout;                                         // of the rows of y
};

template <typename T>
struct GateBackward {
  GateForm form = GateForm::concat;
  std::int64_t rows = 0, width = 0;
  const T* u = nullptr;  // as in the forward pass, like o, weight, bias and dropout
  std::int64_t u_stride = 0;
  const T* o = nullptr;
  const Accumulator<T>*weight = nullptr, *bias = nullptr;
  const Accumulator<T>*mean = nullptr, *rstd = nullptr;
  const T* dy = nullptr;  // (rows, parts * width)
  Gradient<T> du;         // (rows, width)
  std::int64_t du_stride = 0;
  Gradient<T> d_o;                          // (rows, width)
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
