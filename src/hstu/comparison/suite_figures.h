// What the experiments of a suite came to, from the logs and profiles of their runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/comparison/suite.h"
#include "hstu/report/run_metrics.h"

namespace hstu {

// Rates are those of one rank (a GPU), over the train lines behind the first `warmup_lines`, by time.
struct SuiteFigures {
  std::string name;
  std::string state = "not started";
  std::int64_t ranks = 1, steps = 0;  // steps: measured
  double step_ms = 0;                 // the wait for its batch included
  std::optional<double> tflops, median_tflops, best_tflops;
  std::optional<double> mfu, median_mfu, best_mfu;      // 0 to 1; none where the device has no data sheet
  double tokens_per_s = 0, samples_per_s = 0;           // samples: of all ranks
  double memory_gib = 0;                                // the pools of the passes, rank 0
  std::optional<double> planned_gib;                    // the same as it was planned
  std::optional<double> balance_before, balance_after;  // the largest work of a rank over the mean
  std::optional<double> exposed_share;                  // of a step: communication beside which nothing runs
  std::optional<double> speedup;                        // over the first experiment, by tokens a second
  double days_per_epoch = 0;
  std::vector<std::pair<std::string, double>> stages;  // ms of a step
  std::string device;                                  // names of what computed
};

// `profiles`: the trace files of the run. An experiment without measured lines has state, name and ranks.
SuiteFigures suite_figures(const SuiteExperiment& experiment, const SuiteBase& base,
                           const RunMetrics& metrics, const std::vector<Json>& profiles);

// Reads the runs in `folder`, in the order of the suite. An experiment without a run is "failed" if it has
// printed something, else "not started".
std::vector<SuiteFigures> read_suite(const Suite& suite, const Path& folder);

// The share of the profiled steps in which messages or collectives run and no operation does; none: a trace
// of one rank, which has neither.
std::optional<double> exposed_share(const Json& trace);

}  // namespace hstu
