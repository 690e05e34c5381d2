// Whether runs converge neither faster than the reference could: the official check against reference
// convergence points (RCP), in samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hstu/mlperf/log_lines.h"

namespace hstu {

// The mean of the samples to the target at a batch, and the least mean of ten runs that a t-test at 5 % does
// not call faster.
struct ConvergenceBand {
  double batch = 0;  // of the point, which is not that of the runs where theirs is smaller than every point's
  double mean = 0, deviation = 0, least = 0;
};
// A point of the reference, between two points their interpolation, below all the smallest; none above all.
std::optional<ConvergenceBand> convergence_band(double batch);

// What the official reader takes from a log. It looks for its words anywhere in a line.
struct Convergence {
  std::optional<double> batch;
  std::optional<double> samples;  // of the last evaluation; none unless run_stop says success
  std::string problem;            // what ends the official reader; "": nothing
};
Convergence convergence_of(const MllogFile& log);

struct ConvergenceVerdict {
  bool passes = false;
  std::string text;              // the reason, and the place in the band
  std::optional<double> factor;  // of the score, above 1: the runs are faster than the mean
};
// Of the runs of a submission, the fastest and the slowest dropped.
ConvergenceVerdict check_convergence(std::span<const Convergence> runs);

// "66,297,354"
std::string samples_text(double samples);

// The mean without the smallest and the largest value.
double olympic_mean(std::vector<double> values);

}  // namespace hstu
