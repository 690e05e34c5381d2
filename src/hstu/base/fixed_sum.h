// A sum of doubles in fixed point: adding and merging are exact, so the result does not depend on the order
// of the terms or on their division over threads and ranks.
#pragma once

#include <array>
#include <cstdint>

namespace hstu {

// Terms are finite and truncated to multiples of 2^-60; their absolute sum must stay below 2^67 (1e20).
class FixedSum {
 public:
  void add(double term) { units_ += static_cast<Wide>(term * 0x1p60); }
  void merge(const FixedSum& other) { units_ += other.units_; }
  double value() const { return static_cast<double>(units_) * 0x1p-60; }

  // The state as two words, low first.
  std::array<std::uint64_t, 2> words() const {
    return {static_cast<std::uint64_t>(units_), static_cast<std::uint64_t>(units_ >> 64)};
  }
  static FixedSum from_words(const std::array<std::uint64_t, 2>& words) {
    FixedSum sum;
    sum.units_ = (static_cast<Wide>(static_cast<std::int64_t>(words[1])) << 64) | static_cast<Wide>(words[0]);
    return sum;
  }
  bool operator==(const FixedSum&) const = default;

 private:
  __extension__ using Wide = __int128;
  Wide units_ = 0;
};

}  // namespace hstu
