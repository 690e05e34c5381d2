// Activation functions, element by element.
//
//   relu   max(0, x); its derivative at 0 is 0
//   gelu   x Phi(x) with the normal distribution function Phi, by erf, in 16 bits on
//          GPUs to 0.0013 of Phi (Hendrycks and Gimpel, 2016)
//   silu   x sigmoid(x)
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

enum class Activation { relu, gelu, silu };
inline constexpr Choice<Activation> kActivations[] = {
    {"relu", Activation::relu}, {"gelu", Activation::gelu}, {"silu", Activation::silu}};

template <typename T>
struct Activate {
  std::int64_t size = 0;
  Activation activation = Activation::relu;
  const T* x = nullptr;  // (size)
  T* y = nullptr;        // (size), or x
};

template <typename T>
struct ActivateBackward {
  std::int64_t size = 0;
  Activation activation = Activation::relu;
  const T* x = nullptr;   // (size) as in the forward pass
  const T* dy = nullptr;  // (size)
  Gradient<T> dx;         // (size), or dy or x if it is not added to
};

template <typename T>
void activate(const Activate<T>& p, HostStream);
template <typename T>
void activate(const Activate<T>& p, CudaStream);
template <typename T>
void activate_backward(const ActivateBackward<T>& p, HostStream);
template <typename T>
void activate_backward(const ActivateBackward<T>& p, CudaStream);

// y (rows, columns - from) = silu of x (rows, columns) from column `from` on.
template <typename T>
struct SiluColumns {
  std::int64_t rows = 0, columns = 0, from = 0;
  const T* x = nullptr;
  T* y = nullptr;
};

// dx (rows, width) *= silu'(x), both in rows that are `stride` apart: the gradient of silu(x) becomes that of
// x.
template <typename T>
struct SiluSlope {
  std::int64_t rows = 0, width = 0, stride = 0;
  const T* x = nullptr;
  T* dx = nullptr;
};

template <typename T>
void silu_columns(const SiluColumns<T>& p, HostStream);
template <typename T>
void silu_columns(const SiluColumns<T>& p, CudaStream);
template <typename T>
void silu_slope(const SiluSlope<T>& p, HostStream);
template <typename T>
void silu_slope(const SiluSlope<T>& p, CudaStream);

}  // namespace hstu::kernels
