// Rotary positions (Su et al., "RoFormer", 2021): in each head of width D the pair of columns (i, i + D / 2)
// is turned by the angle position * base^(-2 i / D), so that a product of two rows depends on the difference
// of their positions.
#pragma once

#include <cstdint>

#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

template <typename T>
struct Rotary {
  std::int64_t rows = 0, heads = 0, head_dim = 0;  // head_dim is even
  double base = 10'000;
  bool back = false;                       // by the negative angles: what gradients take
  const std::int32_t* position = nullptr;  // (rows)
  const T* x = nullptr;                    // (rows, heads * head_dim), rows x_stride apart
  std::int64_t x_stride = 0;
  Gradient<T> y;  // the same shape, rows y_stride apart
  std::int64_t y_stride = 0;
};

template <typename T>
void rotary(const Rotary<T>& p, HostStream);
template <typename T>
void rotary(const Rotary<T>& p, CudaStream);

}  // namespace hstu::kernels
