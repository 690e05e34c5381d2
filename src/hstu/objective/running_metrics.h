// Metrics of a run so far: over training samples, each predicted before the update that uses it, and over all
// evaluations. Checkpoints contain them, so a resumed run reports the same as an uninterrupted one.
// docs/metrics.md
#pragma once

#include "hstu/checkpoint/section.h"
#include "hstu/metrics/measures.h"
#include "hstu/objective/tally.h"

namespace hstu {

class RunningMetrics {
 public:
  virtual ~RunningMetrics() = default;

  // Tallies of the same objective: of a step, and of an evaluation.
  virtual void add_step(const Tally& predictions) = 0;
  virtual void add_evaluation(const Tally& evaluation) = 0;

  // As train and eval lines of the log have them. Names begin with window_: of the latest training samples,
  // or lifetime_: of all training samples, or of all evaluations.
  virtual Measures training() const = 0;
  virtual Measures evaluations() const = 0;

  // Section "metrics". This object must outlive it.
  virtual Section section() = 0;
};

}  // namespace hstu
