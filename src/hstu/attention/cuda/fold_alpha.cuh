// alpha / 2 multiplied into one factor of the scores when it has been copied, instead of into every score.
// That loses nothing in bf16 where it is a power of two of at most 1 (but bits of elements below 2^-100 or
// so). It pays where instructions, not products, take most of the time: at head size 64.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "hstu/attention/cuda/ptx.cuh"

namespace hstu::cuda {

// launch(std::true_type) where alpha / 2 is to be folded, else launch(std::false_type).
template <typename T, int kD, typename Launch>
void with_folding(float half_alpha, const Launch& launch) {
  if constexpr (std::is_same_v<T, __nv_bfloat16> && kD == 64) {
    int exponent = 0;
    if (std::frexp(std::abs(half_alpha), &exponent) == 0.5f && exponent >= -20 && exponent <= 1)
      return launch(std::true_type{});
  }
  launch(std::false_type{});
}

// One warpgroup: `bytes` of bf16 (a multiple of 2048) in shared memory times half_alpha. The products may
// read them when all its threads have done so.
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
