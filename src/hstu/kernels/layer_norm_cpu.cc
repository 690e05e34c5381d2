#include <vector>

#include "hstu/base/threads.h"
#include "hstu/kernels/layer_norm.h"
#include "hstu/kernels/layer_norm_row.h"
#include "hstu/kernels/math.h"
#include "hstu/kernels/reduce.h"

namespace hstu::kernels {
namespace {

// y = result(x, layer_norm(x)) elementwise; keeps each row's statistics.
template <typename T, typename Result>
void forward_rows(const LayerNormForward<T>& p, const Result& result) {
  parallel_blocks(p.rows, kRowBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* const x = p.x + r * p.width;
      T* const y = p.y + r * p.width;
      const auto s = row_statistics(x, p.width, p.epsilon);
      p.mean[r] = s.mean;
      p.rstd[r] = s.rstd;
#pragma omp simd
      for (std::int64_t c = 0; c < p.width; ++c) {
        y[c] = result(x[c], (x[c] - s.mean) * s.rstd * p.weight[c] + p.bias[c]);
      }
    }
  });
}

// sums holds the weight's gradient, then the bias's.
template <typename T, typename Row>
void backward_rows(const LayerNormBackward<T>& p, const Row& row) {
  std::vector<T> total(static_cast<std::size_t>(2 * p.width));
  sum_over_rows(p.rows, 2 * p.width, T(0), total.data(), [&](std::int64_t begin, std::int64_t end, T* sums) {
    std::vector<T> scratch(static_cast<std::size_t>(2 * p.width));
    for (std::int64_t r = begin; r < end; ++r) row(r, sums, sums + p.width, scratch.data());
  });
  for (std::int64_t c = 0; c < p.width; ++c) {
    p.dweight[c] += total[static_cast<std::size_t>(c)];
    p.dbias[c] += total[static_cast<std::size_t>(p.width + c)];
  }
}

}  // namespace

template <typename T>
void layer_norm(const LayerNormForward<T>& p) {
  forward_rows(p, [](T, T normalised) { return normalised; });
}

template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p) {
  backward_rows(p, [&](std::int64_t r, T* dweight, T* dbias, T*) {
    row_backward(p.x + r * p.width, {p.mean[r], p.rstd[r]}, p.weight, p.dy + r * p.width, p.width, p.beta_dx,
                 p.dx + r * p.width, dweight, dbias);
  });
}

template <typename T>
void swish_layer_norm(const LayerNormForward<T>& p) {
  forward_rows(p, [](T x, T normalised) { return x * sigmoid(normalised); });
}

template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p) {
  backward_rows(p, [&](std::int64_t r, T* dweight, T* dbias, T* scratch) {
    const T* const x = p.x + r * p.width;
    const T* const dy = p.dy + r * p.width;
    T* const dx = p.dx + r * p.width;
    const T mean = p.mean[r], rstd = p.rstd[r];
    T* const gate = scratch;          // sigmoid of the normalised row
    T* const dn = scratch + p.width;  // gradient of the normalised row
#pragma omp simd
    for (std::int64_t c = 0; c < p.width; ++c) {
      gate[c] = sigmoid((x[c] - mean) * rstd * p.weight[c] + p.bias[c]);
      dn[c] = dy[c] * x[c] * gate[c] * (T(1) - gate[c]);
    }
    row_backward(x, {mean, rstd}, p.weight, dn, p.width, p.beta_dx, dx, dweight, dbias);
#pragma omp simd
    for (std::int64_t c = 0; c < p.width; ++c) dx[c] += dy[c] * gate[c];
  });
}

template void layer_norm(const LayerNormForward<float>&);
template void layer_norm(const LayerNormForward<double>&);
template void layer_norm_backward(const LayerNormBackward<float>&);
template void layer_norm_backward(const LayerNormBackward<double>&);
template void swish_layer_norm(const LayerNormForward<float>&);
template void swish_layer_norm(const LayerNormForward<double>&);
template void swish_layer_norm_backward(const LayerNormBackward<float>&);
template void swish_layer_norm_backward(const LayerNormBackward<double>&);

}  // namespace hstu::kernels
