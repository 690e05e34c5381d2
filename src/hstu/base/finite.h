// Finds values that are NaN or infinite.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "hstu/base/threads.h"

namespace hstu {

template <typename Float>
bool all_finite(const Float* values, std::int64_t n) {
  bool bad = false;
  for (std::int64_t i = 0; i < n; ++i) bad |= !(std::abs(values[i]) <= std::numeric_limits<Float>::max());
  return !bad;
}

// The index of the first NaN or infinity among `values` (n); n if all are finite. In parallel.
template <typename Float>
std::int64_t first_not_finite(const Float* values, std::int64_t n) {
  constexpr std::int64_t kBlock = 32768;
  const std::int64_t blocks = (n + kBlock - 1) / kBlock;
  const auto size = [&](std::int64_t block) { return std::min(kBlock, n - block * kBlock); };
  const std::int64_t block =
      parallel_find(blocks, 1, [&](std::int64_t b) { return !all_finite(values + b * kBlock, size(b)); });
  if (block == blocks) return n;
  std::int64_t place = block * kBlock;
  while (std::isfinite(values[place])) ++place;
  return place;
}

}  // namespace hstu
