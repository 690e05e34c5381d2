// What a run came to, in one row: for hstu compare and hstu sweep.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/config/config_difference.h"
#include "hstu/metrics/measures.h"
#include "hstu/metrics/metric_spec.h"
#include "hstu/report/comparison.h"
#include "hstu/run/folder.h"

namespace hstu {

struct RunOutcome {
  std::string state = "not ended";  // or the reason of its end
  std::int64_t step = 0, samples = 0;
  Measures metrics;            // of the last evaluation, without those of lists and without counts
  std::string best_metric;     // checkpoint.best; if the run has none, the headline
  std::optional<double> best;  // of all its evaluations
  std::int64_t best_step = -1;
  std::optional<double> samples_per_s;  // of all steps of the run

  bool ended() const { return state != "not ended" && state != "interrupted"; }
};
// Throws Error naming the file if a value has another type than that of the log.
RunOutcome outcome_of(const RunMetrics& metrics, MetricSpecs specs);
Json to_json(const RunOutcome& outcome);

struct ComparedRun {
  NamedRun run;
  ConfigFlattener::Values config;
  RunOutcome outcome;
  ConfigFlattener::Values samples = {};  // evaluated_samples()
};
// UsageError if `path` is not a run or has not started.
ComparedRun read_run(const Path& path, const std::string& name);

// A header and a row for each run: its metrics, then the rest of the outcome.
std::vector<Cells> comparison_table(std::span<const ComparedRun> runs);
// A header with the names of the runs, and a row for each key whose values differ, of those that all runs
// have. `of_kinds` becomes the keys that some kinds of models alone have.
std::vector<Cells> settings_table(std::span<const ComparedRun> runs,
                                  std::vector<std::string>* of_kinds = nullptr);
// "of some kinds of models alone: ..."; "": there are none.
std::string note_on_keys(const std::vector<std::string>& of_kinds);

// Those of all kinds that tables of runs have.
std::vector<MetricSpec> metrics_in_tables(std::span<const MetricSpecs> kinds);

// Four digits; "-" if there is no value.
std::string metric_cell(const std::optional<double>& value);

}  // namespace hstu
