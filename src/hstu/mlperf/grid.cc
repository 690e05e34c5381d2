#include "hstu/mlperf/grid.h"

#include <algorithm>
#include <cmath>

namespace hstu {
namespace {

constexpr double kReferenceBatch = 8192, kLowestRate = 0.5e-6, kHighestRate = 1.5e-6;

std::int64_t steps_of(double samples, double batch) {
  return static_cast<std::int64_t>(std::ceil(samples / batch));
}

// A whole number of batches that holds the fraction, rounded up.
double interval_of(double fraction, double samples, double batch) {
  return std::max(1.0, std::ceil(fraction * samples / batch)) * batch;
}

}  // namespace

GridSamples benchmark_grid_samples(double batch) {
  GridSamples grid;
  grid.interval = interval_of(kEvaluationFraction, static_cast<double>(kBenchmarkTrainSamples), batch);
  // The line through the earliest convergence of the reference at two batches, less two intervals.
  const double start = std::floor((4480 * batch + 135331840) / 3);
  grid.first = std::ceil(start / grid.interval) * grid.interval;
  return grid;
}

EvaluationGrid benchmark_grid(std::int64_t batch) {
  const auto samples = static_cast<double>(batch);
  const GridSamples grid = benchmark_grid_samples(samples);
  return {steps_of(grid.interval, samples), steps_of(grid.first, samples)};
}

EvaluationGrid grid_of(std::int64_t batch, std::int64_t samples, double fraction, double skipped) {
  const auto of_step = static_cast<double>(batch), all = static_cast<double>(samples);
  const double interval = interval_of(fraction, all, of_step);
  const double first = std::max(1.0, std::ceil(std::floor(skipped * all) / interval));
  return {steps_of(interval, of_step), steps_of(first * interval, of_step)};
}

RateBand rate_band(double batch) {
  return {kLowestRate * batch / kReferenceBatch, kHighestRate * batch / kReferenceBatch};
}

}  // namespace hstu
