#include <type_traits>

#include "hstu/kernels/cuda/dense.h"
#include "hstu/kernels/cuda/gemm_mma.cuh"
#include "hstu/kernels/cuda/gemm_sm90.cuh"
#include "hstu/kernels/elementwise.h"
#include "hstu/kernels/linear.h"

namespace hstu::kernels {
namespace {

// False, and nothing is done: no product has this.
bool gelu_in_product(const Dense<BFloat16>& p, CudaStream stream) {
  if (p.activation != Activation::gelu || p.residual != nullptr || p.row_stable) return false;
  const cuda::Product<BFloat16> product{.gemm = {.m = p.rows,
                                                 .n = p.out,
                                                 .k = p.in,
                                                 .a = {p.x, p.in},
                                                 .b = {p.weight, p.out},
                                                 .c = p.y,
                                                 .stride_c = p.out},
                                        .bias = p.bias,
                                        .gelu = true};
  return cuda::fits_tensor_cores(product.gemm) && cuda::multiply_sm90(product, stream);
}

}  // namespace

template <typename T>
void dense(const Dense<T>& p, CudaStream stream) {
  if (p.rows == 0) return;
  if constexpr (std::is_same_v<T, BFloat16>)
    if (cuda::dense_few_rows(p, stream) || gelu_in_product(p, stream)) return;
  const ColumnRange all{0, p.out};
  linear(LinearForward<T>{.rows = p.rows,
                          .in = p.in,
                          .weight_columns = p.out,
                          .columns = {&all, 1},
                          .x = p.x,
                          .weight = p.weight,
                          .bias = p.bias,
                          .residual = p.activation ? nullptr : p.residual,  // products have both
                          .y = p.y,
                          .row_stable = p.row_stable},
         stream);
  const std::int64_t size = p.rows * p.out;
  if (!p.activation) return;
  activate(Activate<T>{size, *p.activation, p.y, p.y}, stream);
  if (p.residual != nullptr) add(Add<T>{size, p.y, p.residual, p.y}, stream);
}

template void dense(const Dense<float>&, CudaStream);
template void dense(const Dense<BFloat16>&, CudaStream);

}  // namespace hstu::kernels
