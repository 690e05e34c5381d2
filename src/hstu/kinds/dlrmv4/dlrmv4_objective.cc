#include "hstu/kinds/dlrmv4/dlrmv4_objective.h"

#include <cmath>

#include "hstu/kinds/dlrmv4/dlrmv4_layout.h"
#include "hstu/loss/binary_cross_entropy.h"
#include "hstu/model/stages.h"

namespace hstu {

// A row for each candidate.
Examples Dlrmv4Objective::examples(const Batch& batch) const {
  const auto user = batch.values<std::int64_t>(kUserColumn),
             position = batch.values<std::int64_t>(kPositionColumn),
             offsets = batch.values<std::int64_t>(dlrmv4::kCandidateOffsets);
  const auto label = batch.values<float>(dlrmv4::kCandidateLabel);
  Examples rows;
  for (std::size_t b = 0; b < user.size(); ++b) {
    const auto count = static_cast<std::size_t>(offsets[b + 1] - offsets[b]);
    rows.user.insert(rows.user.end(), count, user[b]);
    rows.position.insert(rows.position.end(), count, position[b]);
  }
  for (const float y : label) rows.label.push_back(y > 0.5f ? 1 : 0);
  return rows;
}

double Dlrmv4Objective::probability(std::span<const float> logits, std::size_t) const {
  return 1 / (1 + std::exp(-static_cast<double>(logits[0])));
}

Variable Dlrmv4Objective::loss(const Pass& pass, const Variable& logits) const {
  const StageRange stage(pass.tape, kLossStage);
  const double factor = loss_weight_ / static_cast<double>(pass.batch.supervised);
  return loss::binary_cross_entropy(pass.tape, logits, pass.batch.tensor(dlrmv4::kCandidateLabel),
                                    pass.batch.tensor(dlrmv4::kCandidateWeight), factor);
}

}  // namespace hstu
