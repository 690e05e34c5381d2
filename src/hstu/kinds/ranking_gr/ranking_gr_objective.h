// The objective of RankingGR: several yes-or-no labels of an event, or one of several classes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/kinds/ranking_gr/ranking_gr_config.h"
#include "hstu/objective/ranking_objective.h"

namespace hstu {

class RankingGrObjective final : public RankingObjective {
 public:
  explicit RankingGrObjective(RankingGrConfig config);

  // The sum of the losses over rows and tasks, divided by the number of labels (not labels times tasks).
  Variable loss(const Pass& pass, const Variable& logits) const override;
  // The labels of a multi-task head; of a multi-class head "positive", then the classes.
  std::vector<std::string> tasks() const override;
  Examples examples(const Batch& batch) const override;
  double probability(std::span<const float> logits, std::size_t task) const override;
  // result.unanswered has the examples of no class.
  void measure(const Tally& evaluation, const ListQuestion& question,
               EvaluationResult& result) const override;

 private:
  bool is_multi_class() const { return config_.head == RankingHead::multi_class; }

  RankingGrConfig config_;
  std::vector<std::uint8_t> positive_;  // multi_class: 1 for the positive classes
};

}  // namespace hstu
