#include "hstu/kernels/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hstu::kernels {
namespace {

constexpr std::int64_t kLanes = 16;  // Philox calls computed side by side

// The words of calls `counter` .. `counter + kLanes - 1`, word w of call l at words[w][l].
void philox_lanes(std::uint64_t key, std::uint64_t counter, std::uint32_t (&words)[4][kLanes]) {
  std::uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
  for (std::int64_t l = 0; l < kLanes; ++l) {
    const std::uint64_t c = counter + static_cast<std::uint64_t>(l);
    c0[l] = static_cast<std::uint32_t>(c);
    c1[l] = static_cast<std::uint32_t>(c >> 32);
    c2[l] = c3[l] = 0;
  }
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0[l];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2[l];
      c0[l] = static_cast<std::uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
      c1[l] = static_cast<std::uint32_t>(p1);
      c2[l] = static_cast<std::uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
      c3[l] = static_cast<std::uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  std::copy_n(c0, kLanes, words[0]);
  std::copy_n(c1, kLanes, words[1]);
  std::copy_n(c2, kLanes, words[2]);
  std::copy_n(c3, kLanes, words[3]);
}

}  // namespace

template <typename T>
void dropout_factors(const Dropout& dropout, std::int64_t first, std::int64_t n, T* factors) {
  if (dropout.rate == 0) {
    std::fill_n(factors, n, T(1));
    return;
  }
  // 16 bits decide an element; the scale makes up for the rounded rate, so the mean stays exact.
  constexpr std::int64_t kElements = 8;  // of one Philox call
  const auto threshold = static_cast<std::uint32_t>(std::lround(dropout.rate * 65536));
  const T kept = T(65536.0 / (65536.0 - threshold));
  std::uint32_t words[4][kLanes];
  T block[kLanes][kElements];
  for (std::int64_t at = first; at < first + n;) {
    const std::int64_t call = at / kElements;
    philox_lanes(dropout.key, static_cast<std::uint64_t>(call), words);
    for (int w = 0; w < 4; ++w) {
      for (std::int64_t l = 0; l < kLanes; ++l) {
        block[l][2 * w] = (words[w][l] & 0xffff) >= threshold ? kept : T(0);
        block[l][2 * w + 1] = (words[w][l] >> 16) >= threshold ? kept : T(0);
      }
    }
    const std::int64_t skip = at - kElements * call;
    const std::int64_t count = std::min(kElements * kLanes - skip, first + n - at);
    std::copy_n(&block[0][0] + skip, count, factors + (at - first));
    at += count;
  }
}

template void dropout_factors(const Dropout&, std::int64_t, std::int64_t, float*);
template void dropout_factors(const Dropout&, std::int64_t, std::int64_t, double*);

}  // namespace hstu::kernels
