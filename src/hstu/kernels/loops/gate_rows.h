// Rows of the gate (gate.h) with its layer norm and its dropout.
#pragma once

#include "hstu/kernels/gate.h"
#include "hstu/kernels/loops/dropout_rows.h"
#include "hstu/kernels/loops/norm_rows.h"
#include "hstu/kernels/math.h"

namespace hstu::kernels {
namespace {

// f: the dropout's factors of the row of y.
template <typename T>
void concat_row(const GateForward<T>& p, RowStatistics<T> s, const T* u, const T* o, const T* f, T* y) {
  const std::int64_t n = p.width;
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    const T activated = silu(u[c]);
    y[c] = f[c] * activated;
    y[n + c] = f[n + c] * o[c];
    y[2 * n + c] = f[2 * n + c] * activated * ((o[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c]);
  }
}
template <typename T>
void product_row(const GateForward<T>& p, RowStatistics<T> s, const T* u, const T* o, const T* f, T* y) {
#pragma omp simd
  for (std::int64_t c = 0; c < p.width; ++c)
    y[c] = f[c] * silu(u[c]) * ((o[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c]);
}

// du, and dn: the gradient of the normalised row.
template <typename T>
void concat_row_backward(const GateBackward<T>& p, RowStatistics<T> s, const T* u, const T* o, const T* dy,
                         const T* f, T* du, T* dn) {
  const std::int64_t n = p.width;
#pragma omp simd
  for (std::int64_t c = 0; c < n; ++c) {
    const T open = sigmoid(u[c]);
    const T normalised = (o[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c];
    const T g = dy[2 * n + c] * f[2 * n + c];
    const T d_activated = dy[c] * f[c] + g * normalised;
    const T result = d_activated * open * (T(1) + u[c] * (T(1) - open));
    du[c] = p.du.accumulate ? du[c] + result : result;
    dn[c] = g * u[c] * open;
  }
}
template <typename T>
void product_row_backward(const GateBackward<T>& p, RowStatistics<T> s, const T* u, const T* o, const T* dy,
                          const T* f, T* du, T* dn) {
#pragma omp simd
  for (std::int64_t c = 0; c < p.width; ++c) {
    const T open = sigmoid(u[c]), g = dy[c] * f[c];
    const T d_activated = g * ((o[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c]);
    const T result = d_activated * open * (T(1) + u[c] * (T(1) - open));
    du[c] = p.du.accumulate ? du[c] + result : result;
    dn[c] = g * u[c] * open;
  }
}

template <typename T>
void gate_rows(const GateForward<T>& p, std::int64_t begin, std::int64_t end, T* factors) {
  const std::int64_t columns = gate_parts(p.form) * p.width;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* const u = p.u + r * p.u_stride;
    const T* const o = p.o + r * p.width;
    const RowStatistics<T> s = row_statistics(o, p.width, p.epsilon);
    p.mean[r] = s.mean;
    p.rstd[r] = s.rstd;
    row_factors(p.dropout, r, columns, factors);
    if (p.form == GateForm::concat)
      concat_row(p, s, u, o, factors, p.y + r * columns);
    else
      product_row(p, s, u, o, factors, p.y + r * columns);
  }
}

template <typename T>
void gate_rows_backward(const GateBackward<T>& p, std::int64_t begin, std::int64_t end, T* sums, T* scratch) {
  const std::int64_t n = p.width, columns = gate_parts(p.form) * n;
  T* const f = scratch;
  T* const dn = f + columns;       // and n elements that norm_row_backward may overwrite
  T* const unwanted = dn + 2 * n;  // du and d_o where they are not wanted
  for (std::int64_t r = begin; r < end; ++r) {
    const T* const u = p.u + r * p.u_stride;
    const T* const o = p.o + r * n;
    const T* const dy = p.dy + r * columns;
    T* const du = p.du.to != nullptr ? p.du.to + r * p.du_stride : unwanted;
    T* const d_o = p.d_o.to != nullptr ? p.d_o.to + r * n : unwanted + n;
    const RowStatistics<T> s{p.mean[r], p.rstd[r]};
    row_factors(p.dropout, r, columns, f);
    if (p.form == GateForm::concat)
      concat_row_backward(p, s, u, o, dy, f, du, dn);
    else
      product_row_backward(p, s, u, o, dy, f, du, dn);
    norm_row_backward(o, s, p.weight, dn, n, p.d_o.accumulate, d_o, dn + n, sums, sums + n);
    if (p.form == GateForm::product) continue;
#pragma omp simd
    for (std::int64_t c = 0; c < n; ++c) d_o[c] += dy[n + c] * f[n + c];
  }
}

}  // namespace
}  // namespace hstu::kernels
