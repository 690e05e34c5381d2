#include "hstu/mlperf/convergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/mlperf/rule_engine.h"

namespace hstu {
namespace {

constexpr double kInterval = 2'293'760;  // samples between two evaluations of the reference
constexpr double kSubmitted = 8;         // runs of a submission, without two
constexpr double kInfinite = 1e9;        // what the official reader takes for a run that did not converge

// The evaluation at which each of 20 seeds reached the target. The reference has a third point, at 16,384,
// which lies above the line through these two and is therefore left out.
struct ReferencePoint {
  double batch;
  std::array<int, 20> evaluations;
};
constexpr ReferencePoint kPoints[] = {
    {8'192, {29, 30, 29, 29, 31, 35, 27, 30, 30, 32, 29, 32, 29, 29, 31, 32, 29, 31, 30, 30}},
    {32'768, {47, 46, 49, 46, 48, 47, 49, 54, 50, 48, 50, 56, 49, 49, 53, 43, 48, 56, 49, 48}}};

// The value that a t distribution exceeds with a probability of 5 %.
constexpr double kT24 = 1.7108820799094275, kT26 = 1.7056179197592727;

double least_mean(double mean, double deviation, double runs) {
  const double t = runs == 18 ? kT24 : kT26;  // runs + kSubmitted - 2 degrees of freedom
  return mean - t * deviation * std::sqrt(1 / runs + 1 / kSubmitted);
}

ConvergenceBand band_of(const ReferencePoint& point) {
  std::vector<double> samples(point.evaluations.begin(), point.evaluations.end());
  for (double& value : samples) value *= kInterval;
  const double count = static_cast<double>(samples.size());
  const double all = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0;
  for (const double value : samples) squares += (value - all) * (value - all);
  ConvergenceBand band{point.batch, olympic_mean(samples), std::sqrt(squares / count), 0};
  band.least = least_mean(band.mean, band.deviation, count - 2);
  return band;
}

bool mentions(const MllogLine& line, std::string_view word) {
  return line.text.find(word) != std::string::npos;
}

}  // namespace

std::string samples_text(double samples) {
  return std::abs(samples) < 1e15 ? with_separators(std::llround(samples)) : fmt::format("{:.3g}", samples);
}

double olympic_mean(std::vector<double> values) {
  require(values.size() > 2, "expected more than two values");
  std::ranges::sort(values);
  return std::accumulate(values.begin() + 1, values.end() - 1, 0.0) / static_cast<double>(values.size() - 2);
}

std::optional<ConvergenceBand> convergence_band(double batch) {
  const ConvergenceBand low = band_of(kPoints[0]), high = band_of(kPoints[1]);
  if (batch <= low.batch) return low;
  if (batch == high.batch) return high;
  if (batch > high.batch) return std::nullopt;
  const double part = (batch - low.batch) / (high.batch - low.batch);
  ConvergenceBand band{batch, low.mean + part * (high.mean - low.mean),
                       low.deviation + part * (high.deviation - low.deviation), 0};
  band.least = least_mean(band.mean, band.deviation, 20);
  return band;
}

Convergence convergence_of(const MllogFile& log) {
  Convergence found;
  if (!log.errors.empty()) found.problem = log.errors.front();
  std::optional<double> last;
  bool is_benchmark = false;
  for (const MllogLine& line : log.lines) {
    if (mentions(line, "global_batch_size")) found.batch = as_number(line.value);
    if (mentions(line, "submission_benchmark")) is_benchmark = line.value == "dlrmv4";
    if (mentions(line, "eval_error") || mentions(line, "eval_accuracy")) {
      const char* const count = is_benchmark ? "samples_count" : "epoch_num";
      if (!line.metadata.is_object() || !line.metadata.contains(count))
        found.problem = fmt::format("line {}: mentions an evaluation and has no {}", line.number, count);
      else
        last = as_number(line.metadata[count]);
    }
    if (line.key != "run_stop") continue;
    const bool has_status = line.metadata.is_object() && line.metadata.contains("status");
    if (!has_status) found.problem = fmt::format("line {}: run_stop has no status", line.number);
    found.samples = has_status && line.metadata["status"] == "success" ? last : std::nullopt;
  }
  if (!is_benchmark && found.problem.empty()) found.problem = "submission_benchmark is not dlrmv4";
  return found;
}

ConvergenceVerdict check_convergence(std::span<const Convergence> runs) {
  std::vector<double> samples;
  std::int64_t diverged = 0;
  for (const Convergence& run : runs) {
    if (!run.problem.empty()) return {false, run.problem, {}};
    if (!run.batch) return {false, "global_batch_size is missing", {}};
    if (run.batch != runs.front().batch) return {false, "the runs have different batches", {}};
    samples.push_back(run.samples.value_or(kInfinite));
    diverged += run.samples ? 0 : 1;
  }
  if (diverged > 1) return {false, fmt::format("{} runs did not converge", diverged), {}};
  if (samples.size() < 3) return {false, "the mean without two runs needs three", {}};
  const double batch = *runs.front().batch, mean = olympic_mean(samples);
  const auto band = convergence_band(batch);
  if (!band)
    return {false,
            fmt::format("no reference point for a batch of {}: the largest has {}", batch, kPoints[1].batch),
            {}};
  const std::string text =
      fmt::format("mean of {} samples; the reference at a batch of {} has {}, at least {} are allowed",
                  samples_text(mean), band->batch, samples_text(band->mean), samples_text(band->least));
  if (mean < band->least) return {false, "faster than the reference can be: " + text, {}};
  if (mean >= band->mean) return {true, text, {}};
  const double factor = band->mean / mean;
  return {true, fmt::format("{}: the score is multiplied by {:.4f}", text, factor), factor};
}

}  // namespace hstu
