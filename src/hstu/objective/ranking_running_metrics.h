// The running metrics of a ranking objective: exact over a window of training samples, in constant memory
// over all of them and over all evaluations.
#pragma once

#include <cstdint>

#include "hstu/metrics/ranking.h"
#include "hstu/objective/running_metrics.h"

namespace hstu {

class RankingRunningMetrics final : public RunningMetrics {
 public:
  // The window holds the latest `window_samples` training samples.
  explicit RankingRunningMetrics(std::int64_t window_samples) : window_(window_samples) {}

  void add_step(const Tally& predictions) override;  // of the first task, as of the evaluation
  void add_evaluation(const Tally& evaluation) override;
  void add_step(const RankingSamples& predictions);
  void add_evaluation(const RankingSamples& evaluation) { evaluations_.add(evaluation); }

  Measures training() const override;
  Measures evaluations() const override;
  const RankingSamples& window() const { return window_; }

  Section section() override;

 private:
  void save(SectionWriter& writer) const;
  void load(const SectionReader& reader);

  RankingSamples window_;
  LifetimeMetrics training_, evaluations_;  // over every training sample, and every sample of evaluations
};

}  // namespace hstu
