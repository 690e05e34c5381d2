// LearningRateSchedule: linear warm-up, then constant or decaying.
#pragma once

#include <cstdint>

#include "hstu/base/choice.h"

namespace hstu {

enum class Decay { none, linear, cosine };
inline constexpr Choice<Decay> kDecays[] = {
    {"none", Decay::none}, {"linear", Decay::linear}, {"cosine", Decay::cosine}};

struct LearningRateSchedule {
  double base = 1e-3;
  double start = 0.0;             // initial rate of warm-up; never above base
  std::int64_t warmup_steps = 0;  // 0: none
  // Step g (0 is the first) of warm-up has start + (base - start) * min(1, p / warmup_steps) with p = g + 1,
  // so that the first step already updates. With this switch p = g, as in the MLPerf DLRMv4 reference: with
  // start 0 its first step changes only Adam's moments.
  bool warmup_from_zero_step = false;
  // From the end of warm-up to step decay_steps (counted from the start of training) the rate falls from base
  // to final_fraction * base and remains constant. decay_steps must exceed warmup_steps.
  Decay decay = Decay::none;
  std::int64_t decay_steps = 0;
  double final_fraction = 0.0;

  // Throws UsageError for invalid values. Call once, after reading the configuration.
  void validate() const;
  // The rate of step g >= 0, the number of steps done before it. A pure function: resuming needs no state.
  double at(std::int64_t step) const;
};

}  // namespace hstu
