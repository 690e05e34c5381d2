#include <algorithm>
#include <optional>
#include <vector>

#include "hstu/device/cuda/current_device.h"
#include "hstu/device/cuda_calls.h"
#include "hstu/kernels/activation.h"
#include "hstu/kernels/cuda/column_sums.cuh"
#include "hstu/kernels/cuda/dense.h"
#include "hstu/kernels/cuda/gemm.cuh"
#include "hstu/kernels/cuda/gemm_mma.cuh"
#include "hstu/kernels/cuda/gemm_sm90.cuh"
#include "hstu/kernels/elementwise.h"
#include "hstu/kernels/linear.h"
#include "hstu/kernels/scratch_sizes.h"

namespace hstu::kernels {

using namespace cuda;

namespace {

template <typename T>
void add_products(const LinearForward<T>& p, std::vector<Product<T>>& products) {
  const std::int64_t n = total_width(p.columns);
  std::int64_t at = 0;
  for (const ColumnRange& c : p.columns) {
    const std::int64_t width = c.width();
    products.push_back({.gemm = {.m = p.rows,
                                 .n = width,
                                 .k = p.in,
                                 .a = {p.x, p.in},
                                 .b = {p.weight + c.begin, p.weight_columns},
                                 .c = p.y + at,
                                 .stride_c = n},
                        .bias = p.bias == nullptr ? nullptr : p.bias + c.begin,
                        .residual = p.residual == nullptr ? nullptr : p.residual + at,
                        .relu = p.relu,
                        .gelu = p.gelu,
                        .activated = p.activated == nullptr
                                         ? nullptr
                                         : p.activated + std::max<std::int64_t>(0, at - p.silu_from),
                        .stride_activated = n - p.silu_from,
                        .silu_from = std::clamp<std::int64_t>(p.silu_from - at, 0, width),
                        .row_stable = p.row_stable});
    at += width;
  }
}

// The products of a backward pass: those of inputs one after another where they add to the same.
template <typename T>
struct BackwardProducts {
  std::vector<Product<T, float>> weights;
  std::vector<Product<T>> inputs, more_inputs;

  void run(CudaStream stream) {
    if constexpr (std::is_same_v<T, float>) {
      weights.insert(weights.end(), inputs.begin(), inputs.end());
      multiply<float, float>(weights, stream);
    } else {
      multiply<T, float>(weights, stream);
      multiply<T, T>(inputs, stream);
    }
    for (const Product<T>& one : more_inputs) multiply<T, T>({&one, 1}, stream);
  }
};

template <typename T>
void add_products(const LinearBackward<T>& p, BackwardProducts<T>& products, CudaStream stream) {
  const std::int64_t n = total_width(p.columns);
  const bool all_columns = n == p.weight_columns;
  const auto clear = [&](const Gradient<float>& gradient, std::int64_t size) {
    if (gradient.to == nullptr || gradient.accumulate || all_columns) return;
    hstu::cuda::set_zero(gradient.to, static_cast<std::size_t>(size) * sizeof(float), whole(stream));
  };
  clear(p.dweight, p.in * p.weight_columns);
  clear(p.dbias, p.weight_columns);
  std::int64_t at = 0;
  for (const ColumnRange& c : p.columns) {
    const std::int64_t width = c.width();
    const Target<float> dbias{p.dbias.to == nullptr ? nullptr : p.dbias.to + c.begin,
                              p.dbias.accumulate || !all_columns, p.dbias.late};
    if (p.dweight.to != nullptr) {
      products.weights.push_back({.gemm = {.m = p.in,
                                           .n = width,
                                           .k = p.rows,
                                           .a = {p.x, p.in, Op::transpose},
                                           .b = {p.dy + at, n},
                                           .beta = static_cast<float>(p.dweight.accumulate || !all_columns),
                                           .c = p.dweight.to + c.begin,
                                           .stride_c = p.weight_columns},
                                  .column_sums = dbias,
                                  .late = p.dweight.late});
    } else if (dbias.to != nullptr) {
      sum_columns(p.rows, width, native(p.dy + at), n, dbias, stream);
    }
    if (p.dx.to != nullptr) {
      auto& inputs = at == 0 ? products.inputs : products.more_inputs;
      inputs.push_back({.gemm = {.m = p.rows,
                                 .n = p.in,
                                 .k = width,
                                 .a = {p.dy + at, n},
                                 .b = {p.weight + c.begin, p.weight_columns, Op::transpose},
                                 .beta = static_cast<float>(at > 0 || p.dx.accumulate),
                                 .c = p.dx.to,
                                 .stride_c = p.in},
                        .mask = p.x_is_relu ? p.x : nullptr});
    }
    at += width;
  }
}

// False, and nothing is done: products compute it. A dense layer adds its residual behind relu, not before
// it.
bool linear_of_few_rows(const LinearForward<BFloat16>& p, CudaStream stream) {
  if (p.gelu || (p.relu && p.residual != nullptr)) return false;
  if (!p.forward_alone) return false;
  std::optional<Activation> activation;
  if (p.relu) activation = Activation::relu;
  return dense_few_rows({.rows = p.rows,
                         .in = p.in,
                         .out = total_width(p.columns),
                         .x = p.x,
                         .weight = p.weight,
                         .bias = p.bias,
                         .activation = activation,
                         .residual = p.residual,
                         .y = p.y,
                         .activated = p.activated,
                         .silu_from = p.silu_from,
                         .columns = p.columns,
                         .weight_columns = p.weight_columns,
                         .weight_is_ready = p.weight_is_ready,
                         .row_stable = p.row_stable},
                        stream);
}

// How many of the first rows the tiles of Hopper take where the rest are faster as few rows: where they are
// what the tiles of one more round would have.
std::int64_t rows_before_few(const LinearForward<BFloat16>& p) {
  if (!p.forward_alone || p.row_stable) return p.rows;
  const std::int64_t multiprocessors =
      hstu::cuda::current_device_attribute(cudaDevAttrMultiProcessorCount, "linear");
  const ProductTiles tiles = hopper_tiles(multiprocessors);
  const auto rounds = [&](std::int64_t rows) {
    std::int64_t all = 0;
    for (const ColumnRange& c : p.columns)
      all += (count_of_tiles(rows, c.width(), tiles) + tiles.wanted - 1) / tiles.wanted;
    return all;
  };
  const std::int64_t whole = p.rows / tiles.rows * tiles.rows;
  return whole > 0 && rounds(whole) < rounds(p.rows) ? whole : p.rows;
}

// Some of the rows, from `first` on.
LinearForward<BFloat16> rows_of(LinearForward<BFloat16> p, std::int64_t first, std::int64_t rows) {
  const std::int64_t n = total_width(p.columns);
  p.rows = rows;
  p.x += first * p.in, p.y += first * n;
  if (p.residual != nullptr) p.residual += first * n;
  if (p.activated != nullptr) p.activated += first * (n - p.silu_from);
  return p;
}

// The product of dx multiplies by the slope of gelu, and gives gelu once more. False, and nothing is done: no
// kernel has both.
bool gelu_in_product(const LinearBackward<BFloat16>& p, CudaStream stream) {
  if (p.dx.to == nullptr || p.dx.accumulate || p.columns.size() != 1) return false;
  const ColumnRange& c = p.columns[0];
  const Product<BFloat16> product{.gemm = {.m = p.rows,
                                           .n = p.in,
                                           .k = c.width(),
                                           .a = {p.dy, c.width()},
                                           .b = {p.weight + c.begin, p.weight_columns, Op::transpose},
                                           .c = p.dx.to,
                                           .stride_c = p.in},
                                  .gelu = true,
                                  .mask = p.before_gelu,
                                  .activated = p.x_again,
                                  .stride_activated = p.in};
  return fits_tensor_cores(product.gemm) && multiply_sm90(product, stream);
}

}  // namespace

template <typename T>
void linear(const LinearForward<T>& p, CudaStream stream) {
  if (p.rows == 0) return;
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (linear_of_few_rows(p, stream)) return;
    const std::int64_t whole = rows_before_few(p);
    if (whole < p.rows && linear_of_few_rows(rows_of(p, whole, p.rows - whole), stream))
      return linear(rows_of(p, 0, whole), stream);
  }
  std::vector<Product<T>> products;
  add_products(p, products);
  const bool activated = cuda::multiply<T, T>(products, stream);
  if (p.activated == nullptr || activated) return;
  const std::int64_t n = total_width(p.columns);
  if (p.gelu)
    activate(Activate<T>{p.rows * n, Activation::gelu, p.y, p.activated}, stream);
  else
    silu_columns(SiluColumns<T>{p.rows, n, p.silu_from, p.y, p.activated}, stream);
}

template <typename T>
void linear_backward(const LinearBackward<T>& p, CudaStream stream) {
  if (p.before_gelu != nullptr) {
    LinearBackward<T> rest = p;
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (gelu_in_product(p, stream)) {
        rest.x = p.x_again, rest.before_gelu = nullptr, rest.dx = {};
        return linear_backward(rest, stream);
      }
    }
    return linear_backward_through_gelu(p, stream);
  }
  BackwardProducts<T> products;
  add_products(p, products, stream);
  products.run(stream);
  pass_gradient(PassGradient<T>{p.rows * total_width(p.columns), p.dy, p.dresidual}, stream);
}

template <typename T>
void grouped_linear(const GroupedLinearForward<T>& p, CudaStream stream) {
  const ColumnRange all{0, p.out};
  std::vector<Product<T>> products;
  for (std::int64_t g = 0; g < p.groups; ++g) add_products(p.group(g, all), products);
  cuda::multiply<T, T>(products, stream);
}

template <typename T>
void grouped_linear_backward(const GroupedLinearBackward<T>& p, CudaStream stream) {
  const ColumnRange all{0, p.out};
  BackwardProducts<T> products;
  for (std::int64_t g = 0; g < p.groups; ++g) add_products(p.group(g, all), products, stream);
  products.run(stream);
}

template void grouped_linear(const GroupedLinearForward<float>&, CudaStream);
template void grouped_linear(const GroupedLinearForward<BFloat16>&, CudaStream);
template void grouped_linear_backward(const GroupedLinearBackward<float>&, CudaStream);
template void grouped_linear_backward(const GroupedLinearBackward<BFloat16>&, CudaStream);
template void linear(const LinearForward<float>&, CudaStream);
template void linear(const LinearForward<BFloat16>&, CudaStream);
template void linear_backward(const LinearBackward<float>&, CudaStream);
template void linear_backward(const LinearBackward<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
