// The sizes of the blocks that pools keep.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace hstu {

inline constexpr std::int64_t kSmallestBlock = 256;

// What a buffer counts.
constexpr std::int64_t counted_bytes(std::int64_t bytes) {
  return std::max(bytes, kSmallestBlock);
}

// Sizes are rounded up to one of four steps between powers of two, so that batches of slightly different
// length fit into the same blocks; at most a quarter is wasted.
constexpr std::int64_t block_bytes(std::int64_t bytes) {
  if (bytes <= kSmallestBlock) return kSmallestBlock;
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes - 1)));
  const std::int64_t step = std::max(power, kSmallestBlock) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace hstu
