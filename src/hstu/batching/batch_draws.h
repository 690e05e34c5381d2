// Random draws of a layout, on the loader's threads: negatives and the like. A draw depends on the seed, the
// global batch, and the names of a sample and a token; not on ranks, parts, threads or what was drawn before.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/batching/schedule.h"

namespace hstu {

class BatchDraws {
 public:
  // The same draws in every batch: of evaluations, and of batches that no schedule has.
  BatchDraws() : BatchDraws(0) {}
  explicit BatchDraws(std::uint64_t seed) : key_(derive_key(seed, "layout, fixed")) {}
  // Of a global batch of a run: the batch at this cursor has them again after a resume.
  BatchDraws(std::uint64_t seed, const BatchCursor& batch) : key_(derive_key(seed, "layout")) {
    for (const std::int64_t part : {batch.epoch, batch.window, batch.batch})
      key_ = mix64(key_ + static_cast<std::uint64_t>(part));
  }

  // The draws for one purpose of a layout, such as "negatives".
  BatchDraws of(std::string_view purpose) const {
    BatchDraws draws = *this;
    draws.key_ = derive_key(key_, purpose);
    return draws;
  }
  // Draw i in [0, n) for a token of the sample whose anchor is at `position`; n >= 1.
  std::int64_t below(std::int64_t n, std::int64_t position, std::int64_t token, std::int64_t i) const {
    require(n >= 1, "a draw below {}", n);
    const Philox4 bits = philox(mix64(key_ + static_cast<std::uint64_t>(i)),
                                static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(token));
    const std::uint64_t x = (std::uint64_t{bits[0]} << 32) | bits[1];
    return static_cast<std::int64_t>(x % static_cast<std::uint64_t>(n));  // n is far below 2^64
  }

  // Overwrites `drawn` with draws in [0, n) for the token, two of each block of random bits: other numbers
  // than below() has, in less than half of its time.
  void fill(std::int64_t n, std::int64_t position, std::int64_t token, std::span<std::int64_t> drawn) const {
    require(n >= 1, "a draw below {}", n);
    for (std::size_t i = 0; i < drawn.size(); i += 2) {
      const Philox4 bits =
          philox(mix64(key_ + i), static_cast<std::uint64_t>(position), static_cast<std::uint64_t>(token));
      drawn[i] = scaled(bits[0], bits[1], n);
      if (i + 1 < drawn.size()) drawn[i + 1] = scaled(bits[2], bits[3], n);
    }
  }

 private:
  // 64 random bits to [0, n) by the upper half of a product: without a division.
  static std::int64_t scaled(std::uint32_t high, std::uint32_t low, std::int64_t n) {
    __extension__ using Wide = unsigned __int128;
    const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
    return static_cast<std::int64_t>((Wide{bits} * static_cast<std::uint64_t>(n)) >> 64);
  }

  std::uint64_t key_;
};

}  // namespace hstu
