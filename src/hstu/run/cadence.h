// When a run saves and when it evaluates: pure functions of where it stands and of a clock that never goes
// back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hstu/base/clock.h"
#include "hstu/run/options.h"
#include "hstu/run/state.h"

namespace hstu {

// At most one save a step. The first of these that holds names it, as in the MLPerf DLRMv4 reference:
// "in_window_batch", "global_step", "time_interval", then "end_of_window". Before the first step none holds.
class SaveCadence {
 public:
  // `start`: when training began.
  SaveCadence(const CheckpointSection& options, Clock::time_point start) : options_(options), last_(start) {}

  std::optional<std::string> due(const RunState& state, Clock::time_point now) const;
  // A save of any kind was done, or failed: the time of the next one counts from here.
  void saved(Clock::time_point now) { last_ = now; }

 private:
  CheckpointSection options_;
  Clock::time_point last_;
};

class EvaluationCadence {
 public:
  // `steps_per_epoch` turns fractions of an epoch into steps, rounded up.
  EvaluationCadence(const EvaluationSection& options, std::int64_t steps_per_epoch);

  bool due(const RunState& state) const;

 private:
  std::int64_t every_windows_;
  std::int64_t interval_ = 0;  // in steps; 0: not by the fraction of data
  std::int64_t first_step_ = 0;
};

}  // namespace hstu
