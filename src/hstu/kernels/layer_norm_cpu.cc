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

// row(r, dx, dweight, dbias, scratch) for every row: writes its gradient to dx, by p.dx.accumulate, adds to
// the others and may use scratch (3 * width).
template <typename T, typename Row>
void backward_rows(const LayerNormBackward<T>& p, const Row& row) {
  const std::int64_t n = p.width;
  std::vector<T> total(static_cast<std::size_t>(2 * n));  // the weight's gradient, then the bias's
  sum_over_rows(p.rows, 2 * n, Gradient<T>{total.data()}, [&](std::int64_t begin, std::int64_t end, T* sums) {
    std::vector<T> scratch(static_cast<std::size_t>(4 * n));
    for (std::int64_t r = begin; r < end; ++r) {
      T* const dx = p.dx.to != nullptr ? p.dx.to + r * n : scratch.data() + 3 * n;
      row(r, dx, sums, sums + n, scratch.data());
    }
  });
  put_gradient(total.data(), n, p.dweight);
  put_gradient(total.data() + n, n, p.dbias);
}

}  // namespace

template <typename T>
void layer_norm(const LayerNormForward<T>& p, HostStream) {
  forward_rows(p, [](T, T normalised) { return normalised; });
}

template <typename T>
void layer_norm_backward(const LayerNormBackward<T>& p, HostStream) {
  backward_rows(p, [&](std::int64_t r, T* dx, T* dweight, T* dbias, T* scratch) {
    row_backward(p.x + r * p.width, {p.mean[r], p.rstd[r]}, p.weight, p.dy + r * p.width, p.width,
                 p.dx.accumulate, dx, scratch, dweight, dbias);
  });
}

template <typename T>
void swish_layer_norm(const LayerNormForward<T>& p, HostStream) {
  forward_rows(p, [](T x, T normalised) { return x * sigmoid(normalised); });
}

template <typename T>
void swish_layer_norm_backward(const LayerNormBackward<T>& p, HostStream) {
  backward_rows(p, [&](std::int64_t r, T* dx, T* dweight, T* dbias, T* scratch) {
    const T* const x = p.x + r * p.width;
    const T* const dy = p.dy + r * p.width;
    const T mean = p.mean[r], rstd = p.rstd[r];
    T* const gate = scratch;          // sigmoid of the normalised row
    T* const dn = scratch + p.width;  // gradient of the normalised row
#pragma omp simd
    for (std::int64_t c = 0; c < p.width; ++c) {
      gate[c] = sigmoid((x[c] - mean) * rstd * p.weight[c] + p.bias[c]);
      dn[c] = dy[c] * x[c] * gate[c] * (T(1) - gate[c]);
    }
    row_backward(x, {mean, rstd}, p.weight, dn, p.width, p.dx.accumulate, dx, scratch + 2 * p.width, dweight,
                 dbias);
#pragma omp simd
    for (std::int64_t c = 0; c < p.width; ++c) dx[c] += dy[c] * gate[c];
  });
}

template void layer_norm(const LayerNormForward<float>&, HostStream);
template void layer_norm(const LayerNormForward<double>&, HostStream);
template void layer_norm_backward(const LayerNormBackward<float>&, HostStream);
template void layer_norm_backward(const LayerNormBackward<double>&, HostStream);
template void swish_layer_norm(const LayerNormForward<float>&, HostStream);
template void swish_layer_norm(const LayerNormForward<double>&, HostStream);
template void swish_layer_norm_backward(const LayerNormBackward<float>&, HostStream);
template void swish_layer_norm_backward(const LayerNormBackward<double>&, HostStream);

}  // namespace hstu::kernels
