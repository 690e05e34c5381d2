// Counter-based random numbers: a value is a pure function of (key, counter), so results do not depend on the
// order of work, the number of threads or what was drawn before. Philox4x32-10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC'11).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hstu {

using Philox4 = std::array<std::uint32_t, 4>;

// Ten rounds over the 128-bit counter under the 64-bit key.
constexpr Philox4 philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  Philox4 c{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
            static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// 32 random bits to [0, 1): the upper 24 bits, exact in float.
constexpr float to_unit_float(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}
// 64 random bits to [0, 1), exact in double.
constexpr double to_unit_double(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>(((std::uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

// splitmix64 of `x`: one well-mixed 64-bit value.
[[gnu::always_inline]] constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// A bijection of 32-bit values that mixes all bits (the last step of MurmurHash3).
[[gnu::always_inline]] constexpr std::uint32_t mix32(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

// A key for one purpose ("dropout", a table's name, ...) under one seed.
std::uint64_t derive_key(std::uint64_t seed, std::string_view purpose);

// A stream of numbers for sequential use. Plain data: copy it to save it.
struct RandomStream {
  std::uint64_t key = 0;
  std::uint64_t index = 0;  // position of the next draw

  std::uint64_t bits();
  double uniform();                          // [0, 1)
  double normal();                           // mean 0, variance 1 (Box-Muller)
  std::uint64_t below(std::uint64_t bound);  // [0, bound), bound > 0
};

}  // namespace hstu
