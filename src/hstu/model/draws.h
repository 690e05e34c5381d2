// Random draws of a forward pass. A draw depends on (seed, step, place in the model, sample's name, token,
// column), not on the row in a batch, so the division of samples into parts and ranks does not affect it.
#pragma once

#include <cstdint>

#include "hstu/base/random.h"
#include "hstu/ops/dropout.h"

namespace hstu {

// Places of draws in a model: its input, then its layers.
inline constexpr std::uint64_t kInputPlace = 0, kFirstLayerPlace = 1;

class Draws {
 public:
  // No draws: evaluation.
  Draws() = default;
  Draws(std::uint64_t seed, std::int64_t step)
      : key_(mix64(derive_key(seed, "dropout") + static_cast<std::uint64_t>(step))), active_(true) {}

  // Dropout at one place of the model. row_names (rows) i64: token_name() of each row.
  ops::Dropout dropout(double rate, std::uint64_t place, const Tensor& row_names) const {
    if (!active_) return {};
    return {rate, mix64(key_ + place), row_names};
  }

 private:
  std::uint64_t key_ = 0;
  bool active_ = false;
};

// The name of token n of the sample whose anchor is at `position`: unique for fewer than 2^20 tokens per
// sample and 2^43 events per dataset.
constexpr std::int64_t token_name(std::int64_t position, std::int64_t n) {
  return (position << 20) | n;
}

}  // namespace hstu
