// When a run saves and when it evaluates: pure functions of its state and of a monotonic clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hstu/base/clock.h"
#include "hstu/options/options.h"
#include "hstu/run/state.h"

namespace hstu {

// At most one save per step. The first of these conditions that holds is its reason, as in the MLPerf DLRMv4
// reference: "in_window_batch", "global_step", "time_interval", "end_of_window". None holds at step 0.
class SaveCadence {
 public:
  // `start`: the start of training.
  SaveCadence(const CheckpointSection& options, Clock::time_point start) : options_(options), last_(start) {}

  std::optional<std::string> due(const RunState& state, Clock::time_point now) const;
  // Records a save of any kind, successful or failed: the next interval starts here.
  void saved(Clock::time_point now) { last_ = now; }

 private:
  CheckpointSection options_;
  Clock::time_point last_;
};

class EvaluationCadence {
 public:
  // `steps_per_epoch` converts fractions of an epoch to steps, rounded up.
  EvaluationCadence(const EvaluationSection& options, std::int64_t steps_per_epoch);
  // At multiples of `interval`, from `first_step` on.
  EvaluationCadence(std::int64_t interval, std::int64_t first_step)
      : interval_(interval), first_step_(first_step) {}

  bool due(const RunState& state) const;

 private:
  std::int64_t every_windows_ = 0;
  std::int64_t interval_ = 0;  // in steps; 0: no cadence by the fraction of data
  std::int64_t first_step_ = 0;
};

}  // namespace hstu
