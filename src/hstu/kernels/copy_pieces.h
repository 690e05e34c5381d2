// Parts of matrices, each to a part of another one.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"

namespace hstu::kernels {

// y = x.
template <typename T>
struct CopyPiece {
  std::int64_t rows = 0, width = 0;
  const T* x = nullptr;  // (rows, width), rows `x_stride` elements apart
  std::int64_t x_stride = 0;
  T* y = nullptr;  // the same, rows `y_stride` elements apart
  std::int64_t y_stride = 0;
};

// No piece of y overlaps another one or a piece of x. On a GPU few launches.
template <typename T>
void copy_pieces(std::span<const CopyPiece<T>> all, HostStream);
template <typename T>
void copy_pieces(std::span<const CopyPiece<T>> all, CudaStream);

}  // namespace hstu::kernels
