// The numbers of benchmark dlrmv4 of MLPerf Training 6.1: its data, and where a run evaluates.
#pragma once

#include <cstdint>

namespace hstu {

inline constexpr const char* kBenchmark = "dlrmv4";
inline constexpr std::int64_t kBenchmarkTrainSamples = 2'290'835'423;
inline constexpr std::int64_t kBenchmarkEvaluationSamples = 2'058'204;
inline constexpr double kBenchmarkTarget = 0.75;      // AUC
inline constexpr double kEvaluationFraction = 0.001;  // of the training samples, between two evaluations
// The batch of a rehearsal (SubmissionRules): of those that reference convergence points allow, the one with
// the fewest steps.
inline constexpr std::int64_t kRehearsalBatch = 32'768;
inline constexpr double kRehearsalRate = 4e-6;

// In samples, as the official rules compute them in doubles from global_batch_size.
struct GridSamples {
  double interval = 0, first = 0;
};
GridSamples benchmark_grid_samples(double batch);

// Evaluations come at multiples of `interval_steps`, from `first_step` on.
struct EvaluationGrid {
  std::int64_t interval_steps = 1, first_step = 1;

  bool has(std::int64_t step) const { return step >= first_step && step % interval_steps == 0; }
};
EvaluationGrid benchmark_grid(std::int64_t batch);
// The same arithmetic for other data: an evaluation each `fraction` of the samples, from the first point at
// or after `skipped` of them on.
EvaluationGrid grid_of(std::int64_t batch, std::int64_t samples, double fraction, double skipped);

// The learning rates that both divisions allow for a batch: half to one and a half of the reference's, which
// grows with the batch.
struct RateBand {
  double low = 0, high = 0;

  bool has(double rate) const { return low * (1 - 1e-9) <= rate && rate <= high * (1 + 1e-9); }
};
RateBand rate_band(double batch);

}  // namespace hstu
