// The objective of models that rank: a probability for each example and task, compared with labels of 0 or 1.
// A kind of model says what its logits mean; the metrics are kRankingMetrics (metrics/ranking.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/objective/objective.h"

namespace hstu {

// What each row of a model's logits ranks. R rows, K tasks.
struct Examples {
  std::vector<std::int64_t> user, position;  // (R) original user ids; the anchor of the row's sample
  std::vector<std::uint8_t> label;           // (R, K) 0 or 1
};

class RankingObjective : public Objective {
 public:
  // The tasks, each a yes-or-no question with its own metrics; the first is the run's metric.
  virtual std::vector<std::string> tasks() const = 0;
  // The rows of the logits of a batch, as copies: the batch's memory is reused before the logits are read.
  virtual Examples examples(const Batch& batch) const = 0;
  // The probability of `task` from one row of logits (outputs).
  virtual double probability(std::span<const float> logits, std::size_t task) const = 0;

  // (R, tasks) probabilities of the first tasks, row by row. Waits for `stream`, which computes the logits
  // (R, outputs) or waits for them. Throws NotFiniteError naming the first example with a logit that is NaN
  // or infinite; `place` says what Examples::position counts.
  std::vector<float> probabilities(const Tensor& logits, const Examples& examples, const Stream& stream,
                                   std::size_t tasks, std::string_view place) const;

  std::unique_ptr<Tally> step_tally() const override;  // of the first task
  std::unique_ptr<Tally> evaluation_tally(const EvaluationSource& source) const override;  // of all tasks
  std::unique_ptr<RunningMetrics> running_metrics(std::int64_t window_samples) const override;
  void measure(const Tally& evaluation, const ListQuestion& question,
               EvaluationResult& result) const override;
  // Of the first task label.npy, score.npy (probabilities); of the others label_1.npy, score_1.npy and so on.
  void write_predictions(const Tally& evaluation, const Path& folder) const override;
  const RankingObjective* ranking() const override { return this; }
};

}  // namespace hstu
