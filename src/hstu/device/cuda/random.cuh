// base/random.h on a device: the same numbers from the same keys and counters.
#pragma once

#include <cstdint>

namespace hstu::cuda {

__device__ inline std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

__device__ inline void philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high,
                              std::uint32_t (&c)[4]) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  c[0] = static_cast<std::uint32_t>(counter_low), c[1] = static_cast<std::uint32_t>(counter_low >> 32);
  c[2] = static_cast<std::uint32_t>(counter_high), c[3] = static_cast<std::uint32_t>(counter_high >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t low0 = 0xD2511F53u * c[0], high0 = __umulhi(0xD2511F53u, c[0]);
    const std::uint32_t low1 = 0xCD9E8D57u * c[2], high1 = __umulhi(0xCD9E8D57u, c[2]);
    c[0] = high1 ^ c[1] ^ k0, c[1] = low1, c[2] = high0 ^ c[3] ^ k1, c[3] = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

}  // namespace hstu::cuda
