// Small operations on whole tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

// y = a + b, element by element.
template <typename T>
struct Add {
  std::int64_t size = 0;
  const T *a = nullptr, *b = nullptr;
  T* y = nullptr;
};

// y = a * b, element by element.
template <typename T>
struct Multiply {
  std::int64_t size = 0;
  const T *a = nullptr, *b = nullptr;
  T* y = nullptr;
};
template <typename T>
struct MultiplyBackward {
  std::int64_t size = 0;
  const T *a = nullptr, *b = nullptr, *dy = nullptr;
  Gradient<T> da, db;  // db is written after da, so both may be the same
};

// Copies or adds a gradient unchanged.
template <typename T>
struct PassGradient {
  std::int64_t size = 0;
  const T* dy = nullptr;
  Gradient<T> dx;
};

// y (rows, sum of widths): the parts (rows, width), concatenated along the columns.
template <typename T>
struct ConcatColumns {
  struct Part {
    const T* x = nullptr;
    std::int64_t width = 0;
  };
  std::int64_t rows = 0;
  std::vector<Part> parts;
  T* y = nullptr;
};
template <typename T>
struct ConcatColumnsBackward {
  struct Part {
    Gradient<T> dx;
    std::int64_t width = 0;
  };
  std::int64_t rows = 0;
  const T* dy = nullptr;
  std::vector<Part> parts;  // written in order
};

template <typename T>
void add(const Add<T>& p, HostStream);
template <typename T>
void add(const Add<T>& p, CudaStream);
template <typename T>
void multiply(const Multiply<T>& p, HostStream);
template <typename T>
void multiply(const Multiply<T>& p, CudaStream);
template <typename T>
void multiply_backward(const MultiplyBackward<T>& p, HostStream);
template <typename T>
void multiply_backward(const MultiplyBackward<T>& p, CudaStream);
template <typename T>
void pass_gradient(const PassGradient<T>& p, HostStream);
template <typename T>
void pass_gradient(const PassGradient<T>& p, CudaStream);
template <typename T>
void concat_columns(const ConcatColumns<T>& p, HostStream);
template <typename T>
void concat_columns(const ConcatColumns<T>& p, CudaStream);
template <typename T>
void concat_columns_backward(const ConcatColumnsBackward<T>& p, HostStream);
template <typename T>
void concat_columns_backward(const ConcatColumnsBackward<T>& p, CudaStream);

}  // namespace hstu::kernels
