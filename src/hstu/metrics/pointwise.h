// Metrics that are sums over samples: normalised entropy, log loss, accuracy, calibration. Weights are 1. The
// state is mergeable, and merging parts in any order gives the same bits as adding every sample to one state.
#pragma once

#include <cstdint>
#include <optional>

#include "hstu/base/fixed_sum.h"
#include "hstu/base/json.h"

namespace hstu {

// -log of the probability of the label, in nats, with probabilities clamped to [1e-12, 1 - 1e-12]. Throws
// Error for a probability outside [0, 1], also nan.
double cross_entropy_of(float probability, bool positive);

class PointwiseSums {
 public:
  // probability in [0, 1]; throws Error otherwise, also for nan.
  void add(float probability, bool positive);
  void merge(const PointwiseSums& other);

  std::int64_t n() const { return n_; }
  std::int64_t n_pos() const { return n_pos_; }

  // Share of correct predictions at threshold 0.5 (0.5 predicts a positive). Empty without samples.
  std::optional<double> accuracy() const;
  // Mean cross entropy in nats, probabilities clamped to [1e-12, 1 - 1e-12]. Empty without samples.
  std::optional<double> log_loss() const;
  // Normalised entropy: log loss divided by that of always predicting the mean label (He et al., "Practical
  // lessons from predicting clicks on ads at Facebook", 2014). 1: no better than the mean. Empty if a class
  // is missing.
  std::optional<double> ne() const;
  // Mean prediction / mean label. Empty without positives.
  std::optional<double> calibration() const;

  // For checkpoints.
  Json state() const;
  static PointwiseSums from_state(const Json& state);

 private:
  std::int64_t n_ = 0, n_pos_ = 0, n_correct_ = 0;
  FixedSum cross_entropy_;  // nats
  FixedSum predictions_;
};

}  // namespace hstu
