// A layer of a forward pass without a backward pass: a product with what follows it in one pass.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hstu/base/column_range.h"
#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/activation.h"

namespace hstu::kernels {

// y (M, N) = activation(x (M, K) W (K, N) + bias) + residual.
template <typename T>
struct Dense {
  std::int64_t rows = 0, in = 0, out = 0;  // M, K, N
  const T *x = nullptr, *weight = nullptr;
  const Accumulator<T>* bias = nullptr;  // (N); dense_few_rows: or null
  std::optional<Activation> activation;  // none: x itself
  const T* residual = nullptr;           // (M, N); null: none
  T* y = nullptr;                        // (M, N), not x
  // On a GPU, by dense_few_rows alone: (M, N - silu_from) silu of y's columns from there on; or null.
  T* activated = nullptr;
  std::int64_t silu_from = 0;
  // On a GPU, by dense_few_rows alone: the weight (K, weight_columns) and its bias have more columns, of
  // which these one or two ranges are W. Empty: all.
  std::span<const ColumnRange> columns = {};
  std::int64_t weight_columns = 0;
  // The launch before does not write the weight: it may be read before that has ended.
  bool weight_is_ready = false;
  bool row_stable = false;  // the bits of a row do not depend on M: always so on the host
};

template <typename T>
void dense(const Dense<T>& p, HostStream);
template <typename T>
void dense(const Dense<T>& p, CudaStream);

}  // namespace hstu::kernels
