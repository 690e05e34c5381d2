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

// f (parts * width): of this rank's columns of row r.
template <typename Pass, typename T>
void gate_factors(const Pass& p, std::int64_t r, T* f) {
  if (!p.columns.is_part()) return row_factors(p.dropout, r, gate_parts(p.form) * p.width, f);
  for (std::int64_t part = 0; part < gate_parts(p.form); ++part)
    column_factors(p.dropout, r, p.columns.begin(part, p.width), p.width, f + part * p.width);
}

template <typename T>
void gate_moments_rows(const GateMoments<T>& p, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const RowMoments<T> moments = row_moments(p.o + r * p.width, p.width);
    p.moments[2 * r] = moments.mean;
    p.moments[2 * r + 1] = moments.squares;
  }
}

template <typename T>
void gate_rows(const GateForward<T>& p, std::int64_t begin, std::int64_t end, T* factors) {
  const std::int64_t columns = gate_parts(p.form) * p.width;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* const u = p.u + r * p.u_stride;
    const T* const o = p.o + r * p.width;
    const RowStatistics<T> s =
        p.columns.is_part() ? RowStatistics<T>{p.mean[r], p.rstd[r]} : row_statistics(o, p.width, p.epsilon);
    p.mean[r] = s.mean;
    p.rstd[r] = s.rstd;
    gate_factors(p, r, factors);
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
    gate_factors(p, r, f);
    if (p.form == GateForm::concat)
      concat_row_backward(p, s, u, o, dy, f, du, dn);
    else
      product_row_backward(p, s, u, o, dy, f, du, dn);
    const NormSums<T> of_columns = norm_row_sums(o, s, p.weight, dn, n, sums, sums + n);
    const bool is_part = p.columns.is_part();
    const NormSums<T> of_row = is_part ? NormSums<T>{p.sums[2 * r], p.sums[2 * r + 1]} : of_columns;
    norm_row_dx(o, s, p.weight, dn, n, of_row, is_part ? p.columns.whole : n, p.d_o.accumulate, d_o, dn + n);
    if (p.form == GateForm::product) continue;
#pragma omp simd
    for (std::int64_t c = 0; c < n; ++c) d_o[c] += dy[n + c] * f[n + c];
  }
}

// As above, without gradients.
template <typename T>
void gate_rows_sums(const GateBackward<T>& all, std::int64_t begin, std::int64_t end, T* scratch) {
  GateBackward<T> p = all;
  p.du = {};
  const std::int64_t n = p.width, columns = gate_parts(p.form) * n;
  T *const f = scratch, *const dn = f + columns, *const unwanted = dn + n;  // (3 n)
  for (std::int64_t c = 0; c < 3 * n; ++c) unwanted[c] = 0;
  for (std::int64_t r = begin; r < end; ++r) {
    const T* const u = p.u + r * p.u_stride;
    const T* const o = p.o + r * n;
    const T* const dy = p.dy + r * columns;
    const RowStatistics<T> s{p.mean[r], p.rstd[r]};
    gate_factors(p, r, f);
    if (p.form == GateForm::concat)
      concat_row_backward(p, s, u, o, dy, f, unwanted, dn);
    else
      product_row_backward(p, s, u, o, dy, f, unwanted, dn);
    const NormSums<T> sums = norm_row_sums(o, s, p.weight, dn, n, unwanted + n, unwanted + 2 * n);
    p.sums[2 * r] = sums.g;
    p.sums[2 * r + 1] = sums.gn;
  }
}

}  // namespace
}  // namespace hstu::kernels
