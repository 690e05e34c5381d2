// Runs whose log is written by SubmissionLog from a script, without any training.
#pragma once

#include <string>

#include "hstu/config/config_difference.h"
#include "hstu/mlperf/submission_facts.h"
#include "hstu/mlperf/submission_log.h"
#include "hstu/run/folder.h"

namespace hstu::testing {

// The configuration of the benchmark with a submitter, for a batch of that many samples.
inline RunOptions benchmark_options(std::int64_t batch, std::uint64_t seed = 11) {
  auto options = load_config<RunOptions>(Path(HSTU_SOURCE_DIR) / "configs/yambda-5b-mlperf.toml");
  options.mlperf = true;
  options.seed = seed;
  options.submission.organization = "example";
  options.submission.platform = "scripted";
  options.training.batch_size = batch;
  options.dense.learning_rate = options.sparse.learning_rate = 1e-6 * static_cast<double>(batch) / 8192;
  return options;
}

// Writes `run`: its configuration and a log with all evaluations of the grid until number `last`, counted in
// intervals, which reaches the target.
inline void write_scripted_run(const Path& run, const RunOptions& options, std::int64_t last) {
  const RunFolder folder = create_run_folder(run, options);
  SubmissionLog log(folder.mlperf(), submission_facts(options, 1), true);
  log.end_init();
  const SubmissionData data = submission_data(options, kBenchmarkTrainSamples, kBenchmarkEvaluationSamples);
  log.begin_training(data);
  for (std::int64_t n = 1; n <= last; ++n) {
    const std::int64_t step = n * data.grid.interval_steps;
    log.loss(step, 0.13 - 1e-4 * static_cast<double>(n), 1e-7);
    if (!data.grid.has(step)) continue;
    log.begin_evaluation(step);
    log.end_evaluation(step, n == last ? 0.7501 : 0.74, n == last);
  }
}

}  // namespace hstu::testing
