// Products in bfloat16 on tensor cores.
#pragma once

#include <cstdint>

#include "hstu/kernels/cuda/gemm.cuh"

namespace hstu::kernels::cuda {

// Whether 16 bytes can be copied at a time: addresses and row strides are multiples of 16 bytes. A k below 8
// stays on CUDA cores; one of 8 is half of the least depth of tensor cores, and zeros are the rest.
template <typename Out>
bool fits_tensor_cores(const Gemm<BFloat16, Out>& g) {
  const auto aligned = [](const Factor<BFloat16>& f) {
    return reinterpret_cast<std::uintptr_t>(f.data) % 16 == 0 && f.stride % 8 == 0;
  };
  return aligned(g.a) && aligned(g.b) && g.k >= 8;
}

template <typename Out>
void multiply_mma(const Product<BFloat16, Out>& p, CudaStream stream);

}  // namespace hstu::kernels::cuda
