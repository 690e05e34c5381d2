// Multiplies alpha / 2 into one factor of the scores after its copy, instead of into every score. If alpha /
// 2 is a power of two of at most 1, this is exact in bf16 (except for elements below about 2^-100). It is
// faster at head size 64, where instructions, not products, take most of the time.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "hstu/device/cuda/ptx.cuh"

namespace hstu::cuda {

// Calls launch(std::true_type) if alpha / 2 is folded, launch(std::false_type) otherwise.
template <typename T, int kD, typename Launch>
void with_folding(float half_alpha, const Launch& launch) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && kD == 64) {
    int exponent = 0;
    if (std::frexp(std::abs(half_alpha), &exponent) == 0.5f && exponent >= -20 && exponent <= 1)
      return launch(std::true_type{});
  }
  launch(std::false_type{});
}

// One warpgroup multiplies `bytes` of bf16 (a multiple of 2048) in shared memory by half_alpha. Products may
// read them when all its threads have returned.
__device__ __forceinline__ void fold_alpha(std::uint32_t at, int bytes, float half_alpha) {
  const __nv_bfloat162 factor = __float2bfloat162_rn(half_alpha);
#pragma unroll
  for (int i = 0; i < bytes; i += 128 * 16) {
    const std::uint32_t from = at + i + threadIdx.x % 128 * 16;
    std::uint32_t x[4];
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from)
                 : "memory");
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const __nv_bfloat162 product = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&x[k]), factor);
      x[k] = *reinterpret_cast<const std::uint32_t*>(&product);
    }
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(from), "r"(x[0]), "r"(x[1]), "r"(x[2]),
                 "r"(x[3])
                 : "memory");
  }
  fence_async_proxy();
}

}  // namespace hstu::cuda
