// Products in bfloat16 on Hopper's tensor cores.
#pragma once

#include "hstu/kernels/cuda/gemm.cuh"

namespace hstu::kernels::cuda {

// Does nothing and returns false unless the current device is a Hopper GPU and the product has a form and a
// size for which this is faster than multiply_mma. The product fits tensor cores (gemm_mma.cuh).
template <typename Out>
bool multiply_sm90(const Product<BFloat16, Out>& p, CudaStream stream);

}  // namespace hstu::kernels::cuda
