#include "hstu/run/cadence.h"

#include <algorithm>
#include <cmath>

namespace hstu {
namespace {

bool divides(std::int64_t interval, std::int64_t count) {
  return interval > 0 && count > 0 && count % interval == 0;
}

// The fraction of `steps`, rounded up. The tolerance makes 0.1 * 30 equal 3 in spite of rounding.
std::int64_t steps_of(double fraction, std::int64_t steps) {
  return static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(steps) - 1e-6));
}

}  // namespace

std::optional<std::string> SaveCadence::due(const RunState& state, Clock::time_point now) const {
  if (state.step == 0) return std::nullopt;
  if (divides(options_.every_window_batches, state.next.batch)) return "in_window_batch";
  if (divides(options_.every_steps, state.step)) return "global_step";
  if (options_.every_seconds > 0 && now - last_ >= std::chrono::duration<double>(options_.every_seconds))
    return "time_interval";
  if (state.window_end && divides(options_.every_windows, state.windows_done)) return "end_of_window";
  return std::nullopt;
}

EvaluationCadence::EvaluationCadence(const EvaluationSection& options, std::int64_t steps_per_epoch)
    : every_windows_(options.next_window ? 1 : options.every_windows) {
  if (options.every_data_fraction > 0)
    interval_ = std::max<std::int64_t>(1, steps_of(options.every_data_fraction, steps_per_epoch));
  if (options.skip_until_fraction > 0) first_step_ = steps_of(options.skip_until_fraction, steps_per_epoch);
}

bool EvaluationCadence::due(const RunState& state) const {
  if (state.step < first_step_) return false;
  return divides(interval_, state.step) || (state.window_end && divides(every_windows_, state.windows_done));
}

}  // namespace hstu
