// Matrix products on the GPU, with what follows a product in the same pass.
#pragma once

#include <span>

#include "hstu/kernels/cuda/numbers.cuh"
#include "hstu/kernels/gemm.h"

namespace hstu::kernels::cuda {

// C = alpha op(A) op(B) + beta C + bias + residual, or relu of that, or that where `mask` is above 0. With
// `gelu`, which multiply_sm90() alone has: gelu of that; or where `activated` is given, that, and gelu of it
// there; or where `mask` is given, that times the slope of gelu at the mask, whose gelu is in `activated`.
template <typename T, typename Out = T>
struct Product {
  Gemm<T, Out> gemm;
  const float* bias = nullptr;    // (n) added to every row, or null
  const Out* residual = nullptr;  // (m, n) with the stride of C, or null
  bool relu = false;
  bool gelu = false;
  const Out* mask = nullptr;  // (m, n) with the stride of C, or null
  Out* activated = nullptr;   // (m, n - silu_from) silu of C's columns from there on, or gelu; or null
  std::int64_t stride_activated = 0, silu_from = 0;
  // (n) sums of the columns of B, or none; B is not transposed then, and results are fp32.
  Target<float> column_sums;
  // The bits of a row do not depend on m: k is not cut, and the choice of a kernel does not look at m.
  bool row_stable = false;
  bool late =
      false;  // C and these sums are gradients of parameters, which nothing reads before the pass ends
};

// Products that are independent of each other, in as few launches as their sizes allow. False if `activated`
// is wanted and left to the caller.
template <typename T, typename Out>
bool multiply(std::span<const Product<T, Out>> products, CudaStream stream);

}  // namespace hstu::kernels::cuda
