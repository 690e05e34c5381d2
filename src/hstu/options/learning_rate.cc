#include <algorithm>

#include "hstu/options/options.h"

namespace hstu {

LearningRateSchedule learning_rate(const ScheduleSection& schedule, double base) {
  return {.base = base,
          .start = std::min(schedule.warmup_start, base),
          .warmup_steps = schedule.warmup_steps,
          .warmup_from_zero_step = schedule.warmup_from_zero_step,
          .decay = schedule.decay,
          .decay_steps = schedule.decay_steps,
          .final_fraction = schedule.final_fraction};
}

}  // namespace hstu
