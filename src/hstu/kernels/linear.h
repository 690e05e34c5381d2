// Products with weight matrices, which are (in, out): y = x W + b.
#pragma once

#include <cstdint>
#include <span>

#include "hstu/base/column_range.h"
#include "hstu/base/float16.h"
#include "hstu/device/stream.h"
#include "hstu/kernels/gradient.h"

namespace hstu::kernels {

// The columns of all ranges together.
inline std::int64_t total_width(std::span<const ColumnRange> columns) {
  std::int64_t n = 0;
  for (const ColumnRange& c : columns) n += c.width();
  return n;
}

// y (M, N) = x (M, K) W (K, N) + bias or residual, where W is the concatenation of ranges of the weight's
// columns.
template <typename T>
struct LinearForward {
  std::int64_t rows = 0, in = 0;         // M, K
  std::int64_t weight_columns = 0;       // of the whole weight
  std::span<const ColumnRange> columns;  // N in total
  const T* x = nullptr;                  // (M, K)
  const T* weight = nullptr;             // (K, weight_columns)
  const Accumulator<T>* bias = nullptr;  // (weight_columns) or nullptr
  const T* residual = nullptr;           // (M, N) in place of the bias, or nullptr
  T* y = nullptr;                        // (M, N)
  T* activated = nullptr;                // (M, N - silu_from) silu of y's columns from there on; or nullptr
  std::int64_t silu_from = 0;
};

template <typename T>
struct LinearBackward {
  std::int64_t rows = 0, in = 0, weight_columns = 0;
  std::span<const ColumnRange> columns;
  const T *x = nullptr, *weight = nullptr;  // as in the forward pass
  const T* dy = nullptr;                    // (M, N), of y
  Gradient<T> dx;                           // (M, K)
  Gradient<Accumulator<T>> dweight;         // (K, weight_columns): 0 in unused columns
  Gradient<Accumulator<T>> dbias;           // (weight_columns) likewise
  Gradient<T> dresidual = {};               // (M, N), written after dx
};

template <typename T>
void linear(const LinearForward<T>& p, HostStream);
template <typename T>
void linear(const LinearForward<T>& p, CudaStream);
template <typename T>
void linear_backward(const LinearBackward<T>& p, HostStream);
template <typename T>
void linear_backward(const LinearBackward<T>& p, CudaStream);

// One product for each group g: y[g] (M, N) = x[g] (M, K) weight[g] (K, N) + bias[g] (N).
template <typename T>
struct GroupedLinearForward {
  std::int64_t groups = 0, rows = 0, in = 0, out = 0;  // G, M, K, N
  const T *x = nullptr, *weight = nullptr;             // (G, M, K), (G, K, N)
  const Accumulator<T>* bias = nullptr;                // (G, N)
  T* y = nullptr;                                      // (G, M, N)
};

template <typename T>
struct GroupedLinearBackward {
  std::int64_t groups = 0, rows = 0, in = 0, out = 0;
  const T *x = nullptr, *weight = nullptr;
  const T* dy = nullptr;                    // (G, M, N)
  Gradient<T> dx;                           // (G, M, K)
  Gradient<Accumulator<T>> dweight, dbias;  // (G, K, N), (G, N)
};

// Group by group, on any device.
template <typename T, typename DeviceStream>
void grouped_linear(const GroupedLinearForward<T>& p, DeviceStream stream) {
  const ColumnRange all{0, p.out};
  for (std::int64_t g = 0; g < p.groups; ++g) {
    linear(LinearForward<T>{.rows = p.rows,
                            .in = p.in,
                            .weight_columns = p.out,
                            .columns = {&all, 1},
                            .x = p.x + g * p.rows * p.in,
                            .weight = p.weight + g * p.in * p.out,
                            .bias = p.bias + g * p.out,
                            .y = p.y + g * p.rows * p.out},
           stream);
  }
}

template <typename T, typename DeviceStream>
void grouped_linear_backward(const GroupedLinearBackward<T>& p, DeviceStream stream) {
  const ColumnRange all{0, p.out};
  for (std::int64_t g = 0; g < p.groups; ++g) {
    linear_backward(LinearBackward<T>{.rows = p.rows,
                                      .in = p.in,
                                      .weight_columns = p.out,
                                      .columns = {&all, 1},
                                      .x = p.x + g * p.rows * p.in,
                                      .weight = p.weight + g * p.in * p.out,
                                      .dy = p.dy + g * p.rows * p.out,
                                      .dx = p.dx + g * p.rows * p.in,
                                      .dweight = p.dweight + g * p.in * p.out,
                                      .dbias = p.dbias + g * p.out},
                    stream);
  }
}

}  // namespace hstu::kernels
