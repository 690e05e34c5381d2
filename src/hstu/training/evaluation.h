// Scores the held-out samples, beside the trivial baseline. One code path for training and `hstu eval`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/metrics/ranking.h"
#include "hstu/training/experiment.h"

namespace hstu {

struct EvaluationResult {
  RankingMetrics model, baseline;
  std::optional<double> auc_binned;  // of the model, over 100,000 bins: what a run of any length can keep
  double seconds = 0;
};

class Evaluator {
 public:
  // Scores the baseline once: it does not change during a run.
  explicit Evaluator(Experiment& experiment);

  // False when nothing is held out.
  bool has_samples() const { return !positions_.empty(); }
  EvaluationResult run();

  // What the last run() scored, sample by sample: user.npy, item.npy, time.npy, label.npy, score.npy
  // (probabilities), position.npy (event in the dataset). Creates `folder`.
  void write_predictions(const Path& folder) const;

 private:
  Experiment& experiment_;
  std::vector<std::int64_t> positions_;
  RankingMetrics baseline_;
  RankingSamples samples_;
};

// {"auc", "ne", ..., "auc_binned", "baseline_auc", "baseline_ne"}: what both the log and `hstu eval` report.
Json to_json(const EvaluationResult& result);

}  // namespace hstu
