#include <algorithm>

#include "hstu/device/cuda_calls.h"
#include "hstu/kernels/activation.h"
#include "hstu/kernels/cuda/column_sums.cuh"
#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/elementwise.h"
#include "hstu/kernels/linear.h"

namespace hstu::kernels {

using namespace cuda;

template <typename T>
void linear(const LinearForward<T>& p, CudaStream stream) {
  const std::int64_t n = total_width(p.columns);
  bool activated = true;  // by the products
  std::int64_t at = 0;
  for (const ColumnRange& c : p.columns) {
    const std::int64_t width = c.width();
    const Product<T> product{.gemm = {.m = p.rows,
                                      .n = width,
                                      .k = p.in,
                                      .a = {p.x, p.in},
                                      .b = {p.weight + c.begin, p.weight_columns},
                                      .c = p.y + at,
                                      .stride_c = n},
                             .bias = p.bias == nullptr ? nullptr : p.bias + c.begin,
                             .residual = p.residual == nullptr ? nullptr : p.residual + at,
                             .activated = p.activated == nullptr
                                              ? nullptr
                                              : p.activated + std::max<std::int64_t>(0, at - p.silu_from),
                             .stride_activated = n - p.silu_from,
                             .silu_from = std::clamp<std::int64_t>(p.silu_from - at, 0, width)};
    activated = cuda::multiply(product, stream) && activated;
    at += width;
  }
  if (p.activated != nullptr && !activated)
    silu_columns(SiluColumns<T>{p.rows, n, p.silu_from, p.y, p.activated}, stream);
}

template <typename T>
void linear_backward(const LinearBackward<T>& p, CudaStream stream) {
  const std::int64_t n = total_width(p.columns);
  const bool all_columns = n == p.weight_columns;
  const auto clear = [&](const Gradient<float>& gradient, std::int64_t size) {
    if (gradient.to == nullptr || gradient.accumulate || all_columns) return;
    hstu::cuda::set_zero(gradient.to, static_cast<std::size_t>(size) * sizeof(float), stream.handle);
  };
  clear(p.dweight, p.in * p.weight_columns);
  clear(p.dbias, p.weight_columns);
  std::int64_t at = 0;
  for (const ColumnRange& c : p.columns) {
    const std::int64_t width = c.width();
    const Target<float> dbias{p.dbias.to == nullptr ? nullptr : p.dbias.to + c.begin,
                              p.dbias.accumulate || !all_columns};
    if (p.dweight.to != nullptr) {
      cuda::multiply(
          Product<T, float>{.gemm = {.m = p.in,
                                     .n = width,
                                     .k = p.rows,
                                     .a = {p.x, p.in, Op::transpose},
                                     .b = {p.dy + at, n},
                                     .beta = static_cast<float>(p.dweight.accumulate || !all_columns),
                                     .c = p.dweight.to + c.begin,
                                     .stride_c = p.weight_columns},
                            .column_sums = dbias},
          stream);
    } else if (dbias.to != nullptr) {
      sum_columns(p.rows, width, native(p.dy + at), n, dbias, stream);
    }
    if (p.dx.to != nullptr) {
      cuda::multiply(Product<T>{.gemm = {.m = p.rows,
                                         .n = p.in,
                                         .k = width,
                                         .a = {p.dy + at, n},
                                         .b = {p.weight + c.begin, p.weight_columns, Op::transpose},
                                         .beta = static_cast<float>(at > 0 || p.dx.accumulate),
                                         .c = p.dx.to,
                                         .stride_c = p.in}},
                     stream);
    }
    at += width;
  }
  pass_gradient(PassGradient<T>{p.rows * n, p.dy, p.dresidual}, stream);
}

template void linear(const LinearForward<float>&, CudaStream);
template void linear(const LinearForward<BFloat16>&, CudaStream);
template void linear_backward(const LinearBackward<float>&, CudaStream);
template void linear_backward(const LinearBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
