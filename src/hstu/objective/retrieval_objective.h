// The objective of models that predict a user's next event: their outputs are vectors (R, E), which are
// compared with the rows of all items. Evaluations take the rank of each target among all of them; the
// metrics are kRetrievalMetrics (metrics/rank_metrics.h).
#pragma once

#include <memory>
#include <vector>

#include "hstu/loss/full_softmax.h"
#include "hstu/objective/catalogue_ranks.h"
#include "hstu/objective/item_vectors.h"
#include "hstu/objective/objective.h"
#include "hstu/objective/retrieval_loss.h"
#include "hstu/objective/retrieval_tally.h"

namespace hstu {

// Items of a user that are left out of the lists in which targets are ranked: a target that is one of them
// has no rank, as it is in no list of `hstu predict --exclude-seen`.
enum class SeenItems {
  history,  // those of all events before the target
  window,   // those of the events that the model sees
  none,
};
inline constexpr Choice<SeenItems> kSeenItems[] = {
    {"history", SeenItems::history}, {"window", SeenItems::window}, {"none", SeenItems::none}};

// Objective::excluded_events().
std::int64_t excluded_events(SeenItems seen, std::int64_t history);

// Writes target.npy and rank.npy, the first of the target's places, from 1, or kUnranked.
void write_ranks(const RankedTargets& targets, SeenItems left_out, const Path& folder);

struct RetrievalObjectiveConfig {
  RetrievalLoss loss;
  bool unit = true;  // rows of items are divided by their norms, as the vectors are
  SeenItems exclude_seen = SeenItems::history;
  std::vector<ItemFeature> attributes = {};  // features 1, 2, ... of the model
};

class RetrievalObjective final : public Objective {
 public:
  // The item is feature 0 of the model.
  explicit RetrievalObjective(const RetrievalObjectiveConfig& config) : config_(config) {}

  std::vector<CatalogueUse> catalogues() const override;
  std::int64_t excluded_events(std::int64_t history) const override;
  Variable loss(const Pass& pass, const Variable& vectors) const override;
  // Counts examples alone: the ranks of training positions would take as long as a step.
  std::unique_ptr<Tally> step_tally() const override;
  std::unique_ptr<Tally> evaluation_tally(const EvaluationSource& source) const override;
  std::unique_ptr<RunningMetrics> running_metrics(std::int64_t window_samples) const override;
  void measure(const Tally& evaluation, const ListQuestion& question,
               EvaluationResult& result) const override;
  const RetrievalObjective* retrieval() const override { return this; }
  // How vectors are compared with the catalogue's rows.
  CatalogueScores scores(const EvaluationSource& source) const;
  void write_predictions(const Tally& evaluation, const Path& folder) const override;

 private:
  Variable full_softmax(const Pass& pass, const Variable& vectors, const Tensor& targets,
                        const loss::SoftmaxOptions& options, double divisor) const;

  RetrievalObjectiveConfig config_;
};

}  // namespace hstu
