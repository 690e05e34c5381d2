#include "hstu/kernels/gemm.h"

#include <algorithm>
#include <limits>

#include "hstu/base/error.h"

namespace hstu::kernels {
namespace {

CBLAS_TRANSPOSE blas(Op op) {
  return op == Op::none ? CblasNoTrans : CblasTrans;
}

blasint blas(std::int64_t extent) {
  require(extent <= std::numeric_limits<blasint>::max(), "a matrix extent of {} exceeds BLAS's 32-bit index",
          extent);
  return static_cast<blasint>(extent);
}

}  // namespace

template <>
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, float alpha, const float* a,
          std::int64_t stride_a, const float* b, std::int64_t stride_b, float beta, float* c,
          std::int64_t stride_c) {
  if (m == 0 || n == 0) return;
  cblas_sgemm(CblasRowMajor, blas(op_a), blas(op_b), blas(m), blas(n), blas(k), alpha, a, blas(stride_a), b,
              blas(stride_b), beta, c, blas(stride_c));
}

template <>
void gemm(Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a,
          std::int64_t stride_a, const double* b, std::int64_t stride_b, double beta, double* c,
          std::int64_t stride_c) {
  if (m == 0 || n == 0) return;
  cblas_dgemm(CblasRowMajor, blas(op_a), blas(op_b), blas(m), blas(n), blas(k), alpha, a, blas(stride_a), b,
              blas(stride_b), beta, c, blas(stride_c));
}

}  // namespace hstu::kernels
