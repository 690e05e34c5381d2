// Matrix products on row-major matrices with row strides.
#pragma once

#include <cstdint>

#include "hstu/base/float16.h"
#include "hstu/device/stream.h"

namespace hstu::kernels {

enum class Op { none, transpose };

// A stored matrix, and whether the product transposes it.
template <typename T>
struct Factor {
  const T* data = nullptr;
  std::int64_t stride = 0;  // elements from one stored row to the next
  Op op = Op::none;
};

// C (m, n) = alpha * op(A) (m, k) * op(B) (k, n) + beta * C, summed in Accumulator<T>. beta == 0 overwrites
// C, whatever it contains.
template <typename T, typename Out = T>
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  Accumulator<T> alpha = 1;
  Factor<T> a, b;
  Accumulator<T> beta = 0;
  Out* c = nullptr;
  std::int64_t stride_c = 0;
};

// On the host, for float and double.
template <typename T, typename Out>
void gemm(const Gemm<T, Out>& p, HostStream);

// A matrix (m, n) of rows `stride` apart (0: one row for all), or 0 everywhere.
template <typename T>
struct Start {
  const T* rows = nullptr;
  std::int64_t stride = 0;
};
// The same with `start`, which may be C, in place of beta * C.
template <typename T>
void gemm_onto(const Gemm<T>& p, const Start<T>& start);

}  // namespace hstu::kernels
