// metrics.jsonl: every number a run shows, one JSON object per line, in the order of docs/runs.md. Names of
// fields that depend on times end in _ms, _s, _per_s, tflops or mfu. Every line has time_s, seconds since
// 1970, which never decreases from line to line.
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
#include "hstu/metrics/metric_spec.h"
#include "hstu/objective/evaluation_result.h"
#include "hstu/objective/running_metrics.h"
#include "hstu/options/options.h"
#include "hstu/report/tensorboard.h"
#include "hstu/run/balance_window.h"
#include "hstu/run/state.h"
#include "hstu/run/step_result.h"
#include "hstu/run/throughput.h"

namespace hstu {

// The content of a run's first line, and what it measures.
struct RunFacts {       // NOLINT(bugprone-exception-escape): moving Json checks an invariant
  std::string version;  // of the program
  std::string config;   // resolved, as TOML
  std::string dataset;  // id
  std::uint64_t seed = 0;
  std::string device;                // "host", "cuda:0"
  std::string attention = "auto";    // of kAttentionChoices
  std::optional<double> peak_flops;  // a second, of that device in the run's precision; no data sheet: empty
  struct Table {
    std::string name;
    std::int64_t rows = 0, dim = 0;
  };
  std::vector<Table> tables;
  std::int64_t dense_parameters = 0;  // values
  std::int64_t planned_memory = 0;    // bytes of the passes' pool in a step, as planned; 0: not planned
  std::int64_t train_samples = 0, evaluation_samples = 0;
  Json warm_start;  // report of the warm start; null: none
  MetricSpecs metrics;
};

// Counts by name in a train line.
struct LearnerCounts {
  using ByName = std::vector<std::pair<std::string, std::int64_t>>;
  // By table with limits: capacity, load and what happened to its rows.
  Json tables = Json::object();
  // By table behind a cache: what went through the cache since this process began.
  Json caches = Json::object();
  ByName table_rows;             // rows that exist, by table
  ByName bad_ids;                // ids outside their table, by feature
  std::int64_t beyond_wire = 0;  // values that became infinite between ranks
  Json memory = nullptr;         // of every rank (experiment/memory_watch.h); null: not watched
  Json attention = nullptr;      // of the latest measured step (step/attention_meter.h); null: none
};

// That the dataset of a run was extended.
struct DataGrowth {
  std::string from, to;      // ids
  std::int64_t samples = 0;  // that are left to train
};

// Of one step, between the ends of two.
struct StepTime {
  double step_ms = 0, wait_ms = 0;  // wait_ms: for its batch, beside step_ms
};

class RunLog {
 public:
  // Appends to the file. `samples`: number already trained, of `total_samples`; `training_seconds`: time that
  // earlier processes spent on the steps in the log.
  RunLog(const Path& path, RunFacts facts, const MetricsSection& options, std::int64_t samples,
         std::int64_t total_samples, double training_seconds);

  // Writes the first line of a run.
  void begin();
  // Writes the line of a restart, with the keys that changed; `others`: evaluations are of other samples now.
  void resume(const RunState& state, const std::vector<ConfigDifference>& changed,
              const std::optional<DataGrowth>& growth, bool others);

  // Counts a step. Given `counts`, writes a train line: mean loss and rates since the last one, the metrics
  // of training, and the counts.
  void step(const StepResult& result, const StepTime& time, RunState& state, const RunningMetrics& metrics,
            const std::optional<LearnerCounts>& counts);
  void evaluation(const EvaluationResult& result, const RunState& state, const RunningMetrics& metrics);
  // The line and all lines before it are on the disk when it returns; throws Error otherwise. Called when
  // everything of a checkpoint but its name is on the disk: so an existing checkpoint always has its line.
  void checkpoint(const RunState& state, const std::string& reason, double save_seconds);
  void checkpoint_failed(const RunState& state, const std::string& reason, const std::string& error);
  // As durable as checkpoint().
  void end(const std::string& reason, const RunState& state);

  double training_seconds() const { return training_ms_ / 1000; }  // of the whole run

 private:
  // Writes any line. A line that cannot be written (a full disk) is kept and written later, in its place; the
  // failure is reported once on the terminal.
  void write(Json line);
  Json with_gpus(Json line) const;
  void sync();
  // Wall-clock time at the start plus elapsed time of a steady clock.
  double seconds_since_1970() const;

  RunFacts facts_;
  JsonLinesWriter lines_;
  std::deque<Json> waiting_;
  bool waits_ = false;  // the last line could not be written
  std::optional<TensorboardWriter> tensorboard_;
  double start_s_;  // seconds since 1970 at `start_`
  Clock::time_point start_ = Clock::now();
  std::int64_t total_samples_;
  Progress progress_;
  Throughput throughput_;      // of this process since the last train line
  BalanceWindow balance_;      // of this process
  double training_ms_;         // of all steps
  std::string last_headline_;  // of the last evaluation, for the progress line
};

}  // namespace hstu
