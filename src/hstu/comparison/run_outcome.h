// What a run came to, in one row: for hstu compare and hstu sweep.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/config/config_difference.h"
#include "hstu/report/comparison.h"
#include "hstu/run/folder.h"

namespace hstu {

struct RunOutcome {
  std::string state = "not ended";  // or the reason of its end
  std::int64_t step = 0, samples = 0;
  std::optional<double> auc, ne, log_loss, gauc;  // of the last evaluation
  std::string best_metric = "auc";                // checkpoint.best, if the run has one
  std::optional<double> best;                     // of all its evaluations
  std::int64_t best_step = -1;
  std::optional<double> samples_per_s;  // of all steps of the run

  bool ended() const { return state != "not ended" && state != "interrupted"; }
};
// Throws Error naming the file if a value has another type than that of the log.
RunOutcome outcome_of(const RunMetrics& metrics);
Json to_json(const RunOutcome& outcome);

struct ComparedRun {
  NamedRun run;
  ConfigFlattener::Values config;
  RunOutcome outcome;
};
// UsageError if `path` is not a run or has not started.
ComparedRun read_run(const Path& path, const std::string& name);

// A header and a row for each run: the keys whose values differ, then the outcome.
std::vector<Cells> comparison_table(std::span<const ComparedRun> runs);

// Four digits; "-" if there is no value.
std::string metric_cell(const std::optional<double>& value);

}  // namespace hstu
