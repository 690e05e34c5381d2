// Layer normalisation of rows, plain and with swish.
#pragma once

#include "hstu/kernels/layer_norm.h"
#include "hstu/kernels/loops/vectors.h"
#include "hstu/kernels/math.h"

namespace hstu::kernels {
namespace {

// 16 sums side by side, whatever the width of a vector: sum i is that of the elements i, i + 16, i + 32, ...
constexpr std::int64_t kSums = 16;
template <typename T>
struct LaneSums {
  static constexpr int kCount = static_cast<int>(kSums) / kLanes<T>;
  Vector<T> sum[kCount] = {};

  // All of them, with the last elements, fewer than 16: last(i) is what sum i still has to take.
  template <typename Last>
  [[gnu::always_inline]] T total(std::int64_t left, const Last& last) const {
    T each[kSums];
    for (int v = 0; v < kCount; ++v) store(each + v * kLanes<T>, sum[v]);
    for (std::int64_t i = 0; i < left; ++i) last(i, each[i]);
    for (std::int64_t half = kSums / 2; half > 0; half /= 2) {
      for (std::int64_t i = 0; i < half; ++i) each[i] += each[i + half];
    }
    return each[0];
  }
};

template <typename T>
struct RowStatistics {
  T mean, rstd;
};

[[gnu::always_inline]] inline float square_root(float x) {
  return __builtin_sqrtf(x);
}
[[gnu::always_inline]] inline double square_root(double x) {
  return __builtin_sqrt(x);
}

// The mean of a row, and the sum of the squared distances from it.
template <typename T>
struct RowMoments {
  T mean, squares;
};

template <typename T>
RowMoments<T> row_moments(const T* x, std::int64_t width) {
  const std::int64_t whole = width / kSums * kSums, left = width - whole;
  LaneSums<T> sums, squares;
  for (std::int64_t c = 0; c < whole; c += kSums) {
    for (int v = 0; v < sums.kCount; ++v) sums.sum[v] += load(x + c + v * kLanes<T>);
  }
  const T mean =
      sums.total(
          left, [&](std::int64_t i, T & sum) __attribute__((always_inline)) { sum += x[whole + i]; }) /
      static_cast<T>(width);
  for (std::int64_t c = 0; c < whole; c += kSums) {
    for (int v = 0; v < sums.kCount; ++v) {
      const Vector<T> d = load(x + c + v * kLanes<T>) - mean;
      squares.sum[v] += d * d;
    }
  }
  return {mean, squares.total(
                    left, [&](std::int64_t i, T & sum) __attribute__((always_inline)) {
                      const T d = x[whole + i] - mean;
                      sum += d * d;
                    })};
}

template <typename T>
RowStatistics<T> row_statistics(const T* x, std::int64_t width, T epsilon) {
  const RowMoments<T> moments = row_moments(x, width);
  return {moments.mean, T(1) / square_root(moments.squares / static_cast<T>(width) + epsilon)};
}

// Over a row, with g and n as below.
template <typename T>
struct NormSums {
  T g, gn;
};

// dweight += dn n; dbias += dn.
template <typename T>
NormSums<T> norm_row_sums(const T* x, RowStatistics<T> s, const T* weight, const T* dn, std::int64_t width,
                          T* dweight, T* dbias) {
  const std::int64_t whole = width / kSums * kSums, left = width - whole;
  LaneSums<T> g_sums, gn_sums;
  for (std::int64_t at = 0; at < whole; at += kSums) {
    for (int v = 0; v < g_sums.kCount; ++v) {
      const std::int64_t c = at + v * kLanes<T>;
      const Vector<T> n = (load(x + c) - s.mean) * s.rstd, d = load(dn + c), g = d * load(weight + c);
      g_sums.sum[v] += g;
      gn_sums.sum[v] += g * n;
      store(dweight + c, load(dweight + c) + d * n);
      store(dbias + c, load(dbias + c) + d);
    }
  }
  const T sum_g = g_sums.total(
      left, [&](std::int64_t i, T & sum)
                __attribute__((always_inline)) { sum += dn[whole + i] * weight[whole + i]; });
  const T sum_gn = gn_sums.total(
      left, [&](std::int64_t i, T & sum) __attribute__((always_inline)) {
        const std::int64_t c = whole + i;
        const T n = (x[c] - s.mean) * s.rstd;
        sum += dn[c] * weight[c] * n;
        dweight[c] += dn[c] * n;
        dbias[c] += dn[c];
      });
  return {sum_g, sum_gn};
}

// With n = (x - mean) rstd and g = dn weight, where dn is the gradient of the affine result:
// dx = or += rstd (g - average(g) - n average(g n)), by `accumulate`. The averages are over rows of `whole`
// columns, of which x is some. scratch (width) may be overwritten.
template <typename T>
void norm_row_dx(const T* x, RowStatistics<T> s, const T* weight, const T* dn, std::int64_t width,
                 NormSums<T> sums, std::int64_t whole, bool accumulate, T* dx, T* scratch) {
  const T average_g = sums.g / static_cast<T>(whole), average_gn = sums.gn / static_cast<T>(whole);
  T* const result = accumulate ? scratch : dx;
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) {
    const T n = (x[c] - s.mean) * s.rstd;
    result[c] = s.rstd * (dn[c] * weight[c] - average_g - n * average_gn);
  }
  if (!accumulate) return;
    // A separate loop: in one expression compilers may or may not fuse the product and the sum.
#pragma omp simd
  for (std::int64_t c = 0; c < width; ++c) dx[c] += result[c];
}

// Both of whole rows.
template <typename T>
void norm_row_backward(const T* x, RowStatistics<T> s, const T* weight, const T* dn, std::int64_t width,
                       bool accumulate, T* dx, T* scratch, T* dweight, T* dbias) {
  const NormSums<T> sums = norm_row_sums(x, s, weight, dn, width, dweight, dbias);
  norm_row_dx(x, s, weight, dn, width, sums, width, accumulate, dx, scratch);
}

template <typename T>
RowStatistics<T> keep_statistics(const LayerNormForward<T>& p, std::int64_t row) {
  const RowStatistics<T> s = row_statistics(p.x + row * p.width, p.width, p.epsilon);
  p.mean[row] = s.mean;
  p.rstd[row] = s.rstd;
  return s;
}

template <typename T>
void layer_norm_rows(const LayerNormForward<T>& p, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const T* const x = p.x + r * p.width;
    T* const y = p.y + r * p.width;
    const RowStatistics<T> s = keep_statistics(p, r);
#pragma omp simd
    for (std::int64_t c = 0; c < p.width; ++c) y[c] = (x[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c];
  }
}

template <typename T>
void swish_layer_norm_rows(const LayerNormForward<T>& p, std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const T* const x = p.x + r * p.width;
    T* const y = p.y + r * p.width;
    const RowStatistics<T> s = keep_statistics(p, r);
#pragma omp simd
    for (std::int64_t c = 0; c < p.width; ++c)
      y[c] = x[c] * sigmoid((x[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c]);
  }
}

template <typename T>
void layer_norm_rows_backward(const LayerNormBackward<T>& p, std::int64_t begin, std::int64_t end, T* sums,
                              T* scratch) {
  const std::int64_t n = p.width;
  for (std::int64_t r = begin; r < end; ++r) {
    T* const dx = p.dx.to != nullptr ? p.dx.to + r * n : scratch + n;
    norm_row_backward(p.x + r * n, {p.mean[r], p.rstd[r]}, p.weight, p.dy + r * n, n, p.dx.accumulate, dx,
                      scratch, sums, sums + n);
  }
}

template <typename T>
void swish_layer_norm_rows_backward(const LayerNormBackward<T>& p, std::int64_t begin, std::int64_t end,
                                    T* sums, T* scratch) {
  const std::int64_t n = p.width;
  T* const gate = scratch;    // sigmoid of the normalised row
  T* const dn = scratch + n;  // gradient of the normalised row
  for (std::int64_t r = begin; r < end; ++r) {
    const T* const x = p.x + r * n;
    const T* const dy = p.dy + r * n;
    T* const dx = p.dx.to != nullptr ? p.dx.to + r * n : scratch + 3 * n;
    const RowStatistics<T> s{p.mean[r], p.rstd[r]};
#pragma omp simd
    for (std::int64_t c = 0; c < n; ++c) {
      gate[c] = sigmoid((x[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c]);
      dn[c] = dy[c] * x[c] * gate[c] * (T(1) - gate[c]);
    }
    norm_row_backward(x, s, p.weight, dn, n, p.dx.accumulate, dx, scratch + 2 * n, sums, sums + n);
#pragma omp simd
    for (std::int64_t c = 0; c < n; ++c) dx[c] += dy[c] * gate[c];
  }
}

}  // namespace
}  // namespace hstu::kernels
