// Products with weight matrices, which are (in, out): y = x W + b.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/base/column_range.h"
#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/activation.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

// The columns of all ranges together.
inline std::int64_t total_width(std::span<const ColumnRange> columns) {
  std::int64_t n = 0;
  for (const ColumnRange& c : columns) n += c.width();
  return n;
}

// y (M, N) = x (M, K) W (K, N) + bias + residual, or relu of that (activation.h), where W is the
// concatenation of ranges of the weight's columns.
template <typename T>
struct LinearForward {
  std::int64_t rows = 0, in = 0;         // M, K
  std::int64_t weight_columns = 0;       // of the whole weight
  std::span<const ColumnRange> columns;  // N in total
  const T* x = nullptr;                  // (M, K)
  const T* weight = nullptr;             // (K, weight_columns)
  const Accumulator<T>* bias = nullptr;  // (weight_columns) or nullptr
  const T* residual = nullptr;           // (M, N) or nullptr
  bool relu = false;
  T* y = nullptr;          // (M, N)
  T* activated = nullptr;  // (M, N - silu_from) silu of y's columns from there on; or nullptr
  std::int64_t silu_from = 0;
  bool gelu = false;        // `activated` is gelu of y (M, N) in place of silu
  bool row_stable = false;  // the bits of a row do not depend on M: always so on the host
  // No backward pass follows: kernels of dense layers (dense.h) may take few rows. weight_is_ready as there.
  bool forward_alone = false, weight_is_ready = false;
};

template <typename T>
struct LinearBackward {
  std::int64_t rows = 0, in = 0, weight_columns = 0;
  std::span<const ColumnRange> columns;
  const T *x = nullptr, *weight = nullptr;  // as in the forward pass
  const T* dy = nullptr;                    // (M, N), of y
  // x is relu of what dx is the gradient of: where x is 0, dx is 0, and was before if it is added to.
  bool x_is_relu = false;
  // Or x is gelu of this (M, K), and is computed once more into x_again (M, K), which may then get anything;
  // x is not read. dx is the gradient of what is here, in whose memory it may be.
  const T* before_gelu = nullptr;
  T* x_again = nullptr;
  Gradient<T> dx = {};                    // (M, K)
  Gradient<Accumulator<T>> dweight = {};  // (K, weight_columns): 0 in unused columns
  Gradient<Accumulator<T>> dbias = {};    // (weight_columns) likewise
  Gradient<T> dresidual = {};             // (M, N), written after dx
};

template <typename T>
void linear(const LinearForward<T>& p, HostStream);
template <typename T>
void linear(const LinearForward<T>& p, CudaStream);
template <typename T>
void linear_backward(const LinearBackward<T>& p, HostStream);
template <typename T>
void linear_backward(const LinearBackward<T>& p, CudaStream);

// The pass of an x that is gelu, by passes of other x.
template <typename T, typename DeviceStream>
void linear_backward_through_gelu(const LinearBackward<T>& p, DeviceStream stream) {
  const std::int64_t size = p.rows * p.in;
  LinearBackward<T> weights = p, inputs = p;
  weights.before_gelu = inputs.before_gelu = nullptr;
  weights.dx = {}, weights.dresidual = {}, weights.x = p.x_again;
  inputs.dweight = {}, inputs.dbias = {};
  if (p.dx.to != nullptr) inputs.dx = {p.x_again};
  activate(Activate<T>{size, Activation::gelu, p.before_gelu, p.x_again}, stream);
  linear_backward(weights, stream);
  linear_backward(inputs, stream);
  activate_backward(ActivateBackward<T>{size, Activation::gelu, p.before_gelu, p.x_again, p.dx}, stream);
}

// One product for each group g: y[g] (M, N) = x[g] (M, K) weight[g] (K, N) + bias[g] (N).
template <typename T>
struct GroupedLinearForward {
  std::int64_t groups = 0, rows = 0, in = 0, out = 0;  // G, M, K, N
  const T *x = nullptr, *weight = nullptr;             // (G, M, K), (G, K, N)
  const Accumulator<T>* bias = nullptr;                // (G, N)
  T* y = nullptr;                                      // (G, M, N)
  bool row_stable = false;                             // as in LinearForward

  // The product of one group. `all`: columns [0, N).
  LinearForward<T> group(std::int64_t g, const ColumnRange& all) const {
    return {.rows = rows,
            .in = in,
            .weight_columns = out,
            .columns = {&all, 1},
            .x = x + g * rows * in,
            .weight = weight + g * in * out,
            .bias = bias + g * out,
            .y = y + g * rows * out,
            .row_stable = row_stable};
  }
};

template <typename T>
struct GroupedLinearBackward {
  std::int64_t groups = 0, rows = 0, in = 0, out = 0;
  const T *x = nullptr, *weight = nullptr;
  const T* dy = nullptr;                    // (G, M, N)
  Gradient<T> dx;                           // (G, M, K)
  Gradient<Accumulator<T>> dweight, dbias;  // (G, K, N), (G, N)

  LinearBackward<T> group(std::int64_t g, const ColumnRange& all) const {
    return {.rows = rows,
            .in = in,
            .weight_columns = out,
            .columns = {&all, 1},
            .x = x + g * rows * in,
            .weight = weight + g * in * out,
            .dy = dy + g * rows * out,
            .dx = dx + g * rows * in,
            .dweight = dweight + g * in * out,
            .dbias = dbias + g * out};
  }
};

// Group by group, or on a GPU all groups at once.
template <typename T>
void grouped_linear(const GroupedLinearForward<T>& p, CudaStream);
template <typename T>
void grouped_linear_backward(const GroupedLinearBackward<T>& p, CudaStream);
template <typename T, typename DeviceStream>
void grouped_linear(const GroupedLinearForward<T>& p, DeviceStream stream) {
  const ColumnRange all{0, p.out};
  for (std::int64_t g = 0; g < p.groups; ++g) linear(p.group(g, all), stream);
}
template <typename T, typename DeviceStream>
void grouped_linear_backward(const GroupedLinearBackward<T>& p, DeviceStream stream) {
  const ColumnRange all{0, p.out};
  for (std::int64_t g = 0; g < p.groups; ++g) linear_backward(p.group(g, all), stream);
}

}  // namespace hstu::kernels
