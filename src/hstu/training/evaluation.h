// Scores the held-out samples, beside the trivial baseline. One code path for training and `hstu eval`.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/progress.h"
#include "hstu/comm/communicator.h"
#include "hstu/metrics/ranking.h"
#include "hstu/run/results.h"
#include "hstu/training/experiment.h"

namespace hstu {

class Evaluator {
 public:
  // `baseline` is the file that keeps what the baseline scored: the first run() reads it, or scores the
  // baseline, which is a walk over the whole dataset, and writes it. "": no file.
  explicit Evaluator(Experiment& experiment, Path baseline = {});

  // False when nothing is held out.
  bool has_samples() const { return !positions_.empty(); }
  // Each rank scores its slice of every batch; all get the metrics of all samples. Changes nothing of the
  // learner. Empty when `stop` became true on the way.
  std::optional<EvaluationResult> run(const std::atomic<bool>* stop = nullptr,
                                      Communicator& comm = one_rank());

  // The bad ids of the last run(), counted apart from training's.
  const BadIds& bad_ids() const { return bad_ids_; }
  // The sums and histograms of what the last run() scored.
  const LifetimeMetrics& totals() const { return totals_; }

  // What the last run() scored, sample by sample: user.npy, item.npy, time.npy, label.npy, score.npy
  // (probabilities), position.npy (event in the dataset). Creates `folder`.
  void write_predictions(const Path& folder) const;

 private:
  bool score(Progress& progress, const std::atomic<bool>* stop,
             Communicator& comm);  // into samples_; false when stopped

  Experiment& experiment_;
  Path baseline_file_;
  std::vector<std::int64_t> positions_;
  std::optional<RankingMetrics> baseline_;
  RankingSamples samples_;
  BadIds bad_ids_;  // of the last run(), likewise
  LifetimeMetrics totals_;
};

}  // namespace hstu
