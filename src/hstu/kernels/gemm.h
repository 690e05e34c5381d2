// Matrix products on row-major matrices with row strides, through BLAS, in float and double.
#pragma once

#include <cstdint>

#include <cblas.h>

namespace hstu::kernels {

enum class Op { none, transpose };

// C (m, n) = alpha * op(A) (m, k) * op(B) (k, n) + beta * C. Strides are row strides of the matrices as
// stored. beta == 0 overwrites C whatever it holds. Inside a parallel region the product runs on the calling
// thread.
template <typename T>
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, T alpha, const T* a,
          std::int64_t stride_a, const T* b, std::int64_t stride_b, T beta, T* c, std::int64_t stride_c);

}  // namespace hstu::kernels
