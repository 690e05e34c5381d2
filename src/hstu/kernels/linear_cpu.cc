#include <algorithm>
#include <vector>

#include "hstu/kernels/activation.h"
#include "hstu/kernels/elementwise.h"
#include "hstu/kernels/gemm.h"
#include "hstu/kernels/linear.h"
#include "hstu/kernels/reduce.h"

namespace hstu::kernels {
namespace {

template <typename T>
void bias_gradient(const LinearBackward<T>& p) {
  const std::int64_t n = total_width(p.columns);
  std::vector<T> sums(static_cast<std::size_t>(n));
  column_sums(p.dy, p.rows, n, {sums.data()});
  if (!p.dbias.accumulate) std::fill_n(p.dbias.to, p.weight_columns, T(0));
  const T* sum = sums.data();
  for (const ColumnRange& c : p.columns) {
    for (std::int64_t j = c.begin; j < c.end; ++j) p.dbias.to[j] += *sum++;
  }
}

}  // namespace

template <typename T>
void linear(const LinearForward<T>& p, HostStream stream) {
  const std::int64_t n = total_width(p.columns);
  std::int64_t at = 0;
  for (const ColumnRange& c : p.columns) {
    const std::int64_t width = c.width();
    Start<T> start;
    if (p.bias != nullptr) start = {p.bias + c.begin, 0};
    if (p.residual != nullptr) start = {p.residual + at, n};
    if (p.bias != nullptr && p.residual != nullptr) {
      for (std::int64_t i = 0; i < p.rows; ++i)
        for (std::int64_t j = 0; j < width; ++j)
          p.y[i * n + at + j] = p.residual[i * n + at + j] + p.bias[c.begin + j];
      start = {p.y + at, n};
    }
    gemm_onto(Gemm<T>{.m = p.rows,
                      .n = width,
                      .k = p.in,
                      .a = {p.x, p.in},
                      .b = {p.weight + c.begin, p.weight_columns},
                      .c = p.y + at,
                      .stride_c = n},
              start);
    at += width;
  }
  if (p.relu) activate(Activate<T>{p.rows * n, Activation::relu, p.y, p.y}, stream);
  if (p.activated == nullptr) return;
  if (p.gelu)
    activate(Activate<T>{p.rows * n, Activation::gelu, p.y, p.activated}, stream);
  else
    silu_columns(SiluColumns<T>{p.rows, n, p.silu_from, p.y, p.activated}, stream);
}

template <typename T>
void linear_backward(const LinearBackward<T>& p, HostStream stream) {
  if (p.before_gelu != nullptr) return linear_backward_through_gelu(p, stream);
  const std::int64_t n = total_width(p.columns);
  if (p.dbias.to != nullptr) bias_gradient(p);
  if (p.dweight.to != nullptr && !p.dweight.accumulate) {
    std::fill_n(p.dweight.to, p.in * p.weight_columns, T(0));
  }
  std::int64_t at = 0;
  for (const ColumnRange& c : p.columns) {
    const std::int64_t width = c.width();
    if (p.dweight.to != nullptr) {
      gemm(Gemm<T, Accumulator<T>>{.m = p.in,
                                   .n = width,
                                   .k = p.rows,
                                   .a = {p.x, p.in, Op::transpose},
                                   .b = {p.dy + at, n},
                                   .beta = 1,
                                   .c = p.dweight.to + c.begin,
                                   .stride_c = p.weight_columns},
           stream);
    }
    if (p.dx.to != nullptr) {
      gemm(Gemm<T>{.m = p.rows,
                   .n = p.in,
                   .k = width,
                   .a = {p.dy + at, n},
                   .b = {p.weight + c.begin, p.weight_columns, Op::transpose},
                   .beta = T(at > 0 || p.dx.accumulate),
                   .c = p.dx.to,
                   .stride_c = p.in},
           stream);
    }
    at += width;
  }
  if (p.x_is_relu)
    activate_backward(ActivateBackward<T>{p.rows * p.in, Activation::relu, p.x, p.dx.to, {p.dx.to}}, stream);
  pass_gradient(PassGradient<T>{p.rows * n, p.dy, p.dresidual}, stream);
}

template void linear(const LinearForward<float>&, HostStream);
template void linear(const LinearForward<double>&, HostStream);
template void linear_backward(const LinearBackward<float>&, HostStream);
template void linear_backward(const LinearBackward<double>&, HostStream);

}  // namespace hstu::kernels
