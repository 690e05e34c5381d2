// The objective of DLRMv4: one yes-or-no question, whether an event has the dataset's label.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hstu/objective/ranking_objective.h"

namespace hstu {

class Dlrmv4Objective final : public RankingObjective {
 public:
  explicit Dlrmv4Objective(double loss_weight = 1) : loss_weight_(loss_weight) {}

  // loss_weight times the cross entropy.
  Variable loss(const Pass& pass, const Variable& logits) const override;
  std::vector<std::string> tasks() const override { return {"label"}; }
  Examples examples(const Batch& batch) const override;
  double probability(std::span<const float> logits, std::size_t task) const override;

 private:
  double loss_weight_;
};

}  // namespace hstu
