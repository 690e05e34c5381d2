// Counts that are halved every so many steps, as integers that are ordered like the counts, for the eviction
// "lru+lfu". Instead of halving every old count, a new occurrence counts twice as much every half-life. A
// score therefore never falls, and an untouched row needs no work.
#pragma once

#include <bit>
#include <cstdint>

namespace hstu {

// `score` (0: nothing counted) plus `count` >= 0 occurrences in the half-life `epoch` >= 0, counted from the
// beginning. A score is a floating-point number m 2^(x - 38) with 2^38 <= m < 2^39, stored as x 2^39 + m.
// Sums are truncated: exact in integers, and so the same on every machine.
constexpr std::int64_t add_decayed(std::int64_t score, std::int64_t count, std::int64_t epoch) {
  constexpr int kBits = 39;
  if (count <= 0) return score;
  const int width = std::bit_width(static_cast<std::uint64_t>(count));
  std::int64_t x = epoch + width - 1;
  std::int64_t m = width <= kBits ? count << (kBits - width) : count >> (width - kBits);
  if (score > 0) {
    const std::int64_t other_x = score >> kBits, other_m = score & ((std::int64_t{1} << kBits) - 1);
    const std::int64_t gap = x > other_x ? x - other_x : other_x - x;
    const auto shifted = [gap](std::int64_t value) { return gap > kBits ? 0 : value >> gap; };
    m = x > other_x ? m + shifted(other_m) : other_m + shifted(m);
    if (other_x > x) x = other_x;
    if (m >> kBits != 0) {
      m >>= 1;
      ++x;
    }
  }
  return (x << kBits) | m;
}

}  // namespace hstu
