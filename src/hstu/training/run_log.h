// metrics.jsonl: every number a run shows, one JSON object a line. Fields that tell time end in _ms, _s or
// _per_s; time_s, in every line, is the wall clock in seconds since 1970.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "hstu/base/json_lines.h"
#include "hstu/base/progress.h"
#include "hstu/report/tensorboard.h"
#include "hstu/training/evaluation.h"
#include "hstu/training/run_state.h"
#include "hstu/training/step.h"

namespace hstu {

class RunLog {
 public:
  // Starts the log with a line that describes the run; `resumed` continues the log of an earlier one.
  RunLog(const Path& path, const Experiment& experiment, const std::string& version, bool resumed,
         std::int64_t total_samples);

  // Counts a step; every metrics.every_steps steps a train line with the mean loss and the rates since the
  // last one.
  void step(const StepResult& result, std::int64_t window, double step_ms, double wait_ms, RunState& state);
  void evaluation(const EvaluationResult& result, const RunState& state, std::int64_t window);
  void end(const std::string& reason, const RunState& state);

  double training_seconds() const { return training_ms_ / 1000; }

 private:
  void write(Json line);

  const Experiment& experiment_;
  JsonLinesWriter lines_;
  std::optional<TensorboardWriter> tensorboard_;
  Progress progress_;
  double step_ms_ = 0, wait_ms_ = 0;  // since the last train line
  StageTimes stages_;                 // of the same steps
  std::int64_t samples_ = 0, tokens_ = 0;
  double training_ms_ = 0;  // of all steps
  std::string last_auc_;
};

}  // namespace hstu
