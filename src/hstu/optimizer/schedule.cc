#include "hstu/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "hstu/base/error.h"

namespace hstu {

void LearningRateSchedule::validate() const {
  if (!(base >= 0.0) || !(start >= 0.0) || !std::isfinite(base) || !std::isfinite(start))
    fail_usage("learning rate: expected finite rates >= 0, found base {} and start {}", base, start);
  if (warmup_steps < 0) fail_usage("learning rate: expected warmup_steps >= 0, found {}", warmup_steps);
  if (decay != Decay::none && decay_steps <= warmup_steps) {
    fail_usage("learning rate: expected decay_steps > warmup_steps = {}, found {}", warmup_steps,
               decay_steps);
  }
  if (!(final_fraction >= 0.0 && final_fraction <= 1.0))
    fail_usage("learning rate: expected final_fraction in [0, 1], found {}", final_fraction);
}

double LearningRateSchedule::at(std::int64_t step) const {
  require(step >= 0, "expected a step >= 0, found {}", step);
  const std::int64_t progress = step + (warmup_from_zero_step ? 0 : 1);
  if (progress < warmup_steps) {
    const double from = std::min(start, base);
    return from + (base - from) * (static_cast<double>(progress) / static_cast<double>(warmup_steps));
  }
  if (decay == Decay::none || step <= warmup_steps) return base;
  const double done = std::min(
      1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(decay_steps - warmup_steps));
  const double left = decay == Decay::linear ? 1.0 - done : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return base * (final_fraction + (1.0 - final_fraction) * left);
}

}  // namespace hstu
