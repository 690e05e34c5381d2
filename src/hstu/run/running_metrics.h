// Metrics of a run so far: over training samples, each predicted before the update that uses it, and over all
// evaluations. Checkpoints contain them, so a resumed run reports the same as an uninterrupted one.
// docs/metrics.md
#pragma once

#include <cstdint>

#include "hstu/checkpoint/section.h"
#include "hstu/metrics/ranking.h"

namespace hstu {

class RunningMetrics {
 public:
  // The window holds the latest `window_samples` training samples.
  explicit RunningMetrics(std::int64_t window_samples) : window_(window_samples) {}

  void add_step(const RankingSamples& predictions);
  void add_evaluation(const LifetimeMetrics& evaluation) { evaluations_.merge(evaluation); }

  const RankingSamples& window() const { return window_; }
  const LifetimeMetrics& training() const { return training_; }        // every training sample so far
  const LifetimeMetrics& evaluations() const { return evaluations_; }  // every sample of every evaluation

  // Section "metrics". This object must outlive it.
  Section section();

 private:
  void save(SectionWriter& writer) const;
  void load(const SectionReader& reader);

  RankingSamples window_;
  LifetimeMetrics training_, evaluations_;
};

}  // namespace hstu
