// Dropout's factors of a row (dropout.h).
#pragma once

#include <cstdint>

#include "hstu/base/random.h"
#include "hstu/kernels/dropout.h"
#include "hstu/kernels/dropout_rate.h"

namespace hstu::kernels {
namespace {

constexpr std::int64_t kElements = 8;  // of one Philox call

// The words of the calls `counter` .. `counter + lanes - 1`, computed side by side: word w of call l at
// words[w][l].
template <std::int64_t lanes>
void philox_lanes(std::uint64_t key, std::uint64_t counter, std::uint32_t (&words)[4][lanes]) {
  std::uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (std::int64_t l = 0; l < lanes; ++l) {
    const std::uint64_t c = counter + static_cast<std::uint64_t>(l);
    c0[l] = static_cast<std::uint32_t>(c);
    c1[l] = static_cast<std::uint32_t>(c >> 32);
    c2[l] = c3[l] = 0;
  }
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (std::int64_t l = 0; l < lanes; ++l) {
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
  for (std::int64_t l = 0; l < lanes; ++l) {
    words[0][l] = c0[l];
    words[1][l] = c1[l];
    words[2][l] = c2[l];
    words[3][l] = c3[l];
  }
}

// The factors of elements [8 counter, 8 counter + n), n at most 8 lanes.
template <std::int64_t lanes, typename T>
void draw(std::uint64_t key, std::uint64_t counter, std::uint32_t threshold, T kept, std::int64_t n,
          T* factors) {
  std::uint32_t words[4][lanes];
  philox_lanes(key, counter, words);
  T block[lanes * kElements];
  T* const out = n == lanes * kElements ? factors : block;
  for (std::int64_t l = 0; l < lanes; ++l) {
    for (int w = 0; w < 4; ++w) {
      out[l * kElements + 2 * w] = (words[w][l] & 0xffff) >= threshold ? kept : T(0);
      out[l * kElements + 2 * w + 1] = (words[w][l] >> 16) >= threshold ? kept : T(0);
    }
  }
  for (std::int64_t i = 0; out == block && i < n; ++i) factors[i] = block[i];
}

// Of columns first to first + width - 1.
template <typename T>
void column_factors(const Dropout& dropout, std::int64_t row, std::int64_t first, std::int64_t width,
                    T* factors) {
  const std::uint32_t threshold = dropout_threshold(dropout.rate);
  if (threshold == 0) {
    for (std::int64_t c = 0; c < width; ++c) factors[c] = T(1);
    return;
  }
  const T kept = static_cast<T>(kept_factor(threshold));
  const auto name = static_cast<std::uint64_t>(dropout.row_names != nullptr ? dropout.row_names[row] : row);
  const std::uint64_t key = mix64(dropout.key ^ name);
  constexpr std::int64_t kWide = 16, kNarrow = 8;  // calls computed side by side
  std::int64_t at = 0;
  if (const std::int64_t skipped = first % kElements; skipped != 0) {
    T block[kElements];
    draw<1>(key, static_cast<std::uint64_t>(first / kElements), threshold, kept, kElements, block);
    for (; skipped + at < kElements && at < width; ++at) factors[at] = block[skipped + at];
  }
  while (at < width) {
    const auto counter = static_cast<std::uint64_t>((first + at) / kElements);
    const std::int64_t left = width - at;
    const std::int64_t lanes = left <= kNarrow * kElements ? kNarrow : kWide;
    const std::int64_t n = left < lanes * kElements ? left : lanes * kElements;
    if (lanes == kNarrow)
      draw<kNarrow>(key, counter, threshold, kept, n, factors + at);
    else
      draw<kWide>(key, counter, threshold, kept, n, factors + at);
    at += n;
  }
}

template <typename T>
void row_factors(const Dropout& dropout, std::int64_t row, std::int64_t width, T* factors) {
  column_factors(dropout, row, 0, width, factors);
}

}  // namespace
}  // namespace hstu::kernels
