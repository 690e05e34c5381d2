// metrics.jsonl: every number a run shows, one JSON object a line, in the order of docs/runs.md. Fields that
// tell time end in _ms, _s or _per_s; time_s, in every line, is the clock in seconds since 1970, and never
// less than in the line before.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/clock.h"
#include "hstu/base/json_lines.h"
#include "hstu/base/progress.h"
#include "hstu/config/config_difference.h"
#include "hstu/report/tensorboard.h"
#include "hstu/run/options.h"
#include "hstu/run/results.h"
#include "hstu/run/running_metrics.h"
#include "hstu/run/state.h"

namespace hstu {

// What the first line says of a run.
struct RunFacts {
  std::string version;  // of the program
  std::string config;   // resolved, as TOML
  std::string dataset;  // id
  std::uint64_t seed = 0;
  struct Table {
    std::string name;
    std::int64_t rows = 0, dim = 0;
  };
  std::vector<Table> tables;
  std::int64_t dense_parameters = 0;  // values
  std::int64_t train_samples = 0, evaluation_samples = 0;
  Json warm_start;  // what the run began with, null for nothing
};

// Counts by name that a train line shows.
struct LearnerCounts {
  using ByName = std::vector<std::pair<std::string, std::int64_t>>;
  ByName table_rows;  // rows that exist, by table
  ByName bad_ids;     // ids outside their table, by feature
};

class RunLog {
 public:
  // Goes on behind the last line of the file. `samples`: trained already, of `total_samples`;
  // `training_seconds`: what earlier processes spent on the steps in the log.
  RunLog(const Path& path, RunFacts facts, const MetricsSection& options, std::int64_t samples,
         std::int64_t total_samples, double training_seconds);

  // The first line of a run.
  void begin();
  // The mark of a restart, with the keys that changed.
  void resume(const RunState& state, const std::vector<ConfigDifference>& changed);

  // Counts a step; every metrics.every_steps steps a train line with the mean loss and the rates since the
  // last one, the metrics of training, and what `counts` gives.
  void step(const StepResult& result, double step_ms, double wait_ms, RunState& state,
            const RunningMetrics& metrics, const std::function<LearnerCounts()>& counts);
  void evaluation(const EvaluationResult& result, const RunState& state, const RunningMetrics& metrics);
  // Written and on the disk, with all lines before it, when it returns; throws Error otherwise. Called when a
  // checkpoint lacks nothing but its name: where the checkpoint stands, this line does.
  void checkpoint(const RunState& state, const std::string& reason, double save_seconds);
  void checkpoint_failed(const RunState& state, const std::string& reason, const std::string& error);
  // As durable as checkpoint().
  void end(const std::string& reason, const RunState& state);

  double training_seconds() const { return training_ms_ / 1000; }  // of the whole run

 private:
  // Every line passes here. One that cannot be written (a full disk) is said once on the terminal and written
  // later, in its place.
  void write(Json line);
  void sync();
  // Of the wall clock at the start, and of a steady one since.
  double seconds_since_1970() const;

  RunFacts facts_;
  std::int64_t every_steps_;
  JsonLinesWriter lines_;
  std::deque<Json> waiting_;
  bool waits_ = false;  // the last line could not be written
  std::optional<TensorboardWriter> tensorboard_;
  double start_s_;  // seconds since 1970 at `start_`
  Clock::time_point start_ = Clock::now();
  std::int64_t total_samples_;
  Progress progress_;
  // Since the last train line, by this process.
  double step_ms_ = 0, wait_ms_ = 0;
  StageTimes stages_;
  std::int64_t steps_ = 0, samples_ = 0, tokens_ = 0;
  double training_ms_;  // of all steps
  std::string last_auc_;
};

}  // namespace hstu
