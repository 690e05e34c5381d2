// The probabilities and labels of a ranking objective's examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/metrics/ranking.h"
#include "hstu/objective/ranking_objective.h"
#include "hstu/objective/tally.h"

namespace hstu {

class RankingTally final : public Tally {
 public:
  // Of the objective's first `tasks` tasks. The objective must outlive it.
  RankingTally(const RankingObjective& objective, std::size_t tasks)
      : objective_(objective), samples_(tasks) {}

  void add(const Batch& batch, const Tensor& outputs, const Stream& compute) override;
  std::string settle(const Stream& stream, Communicator& comm) override;
  std::int64_t examples() const override { return samples_.front().size(); }

  // (tasks) the settled examples; groups are users.
  const std::vector<RankingSamples>& samples() const { return samples_; }

 private:
  // A part whose outputs a device may still compute.
  struct Part {
    Tensor logits;  // (R, outputs) f32
    Examples examples;
    Event ready;
    std::vector<std::int64_t> places;  // (R) in the global batch, of each example's sample; of one rank empty
  };

  const RankingObjective& objective_;
  std::vector<Part> parts_;
  std::vector<RankingSamples> samples_;
};

// InternalError for a tally of another objective.
const RankingTally& as_ranking(const Tally& tally);

}  // namespace hstu
