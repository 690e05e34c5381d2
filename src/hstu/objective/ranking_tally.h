// The probabilities and labels of a ranking objective's examples.
#pragma once

#include <cstdint>
#include <optional>
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
      : objective_(objective), collected_(tasks), samples_(tasks) {}

  void keep_latest(std::int64_t examples) override;
  void add(const Batch& batch, const Tensor& outputs, const Stream& compute) override;
  std::string collect(const Stream& stream) override;
  void share(Communicator& comm) override;
  std::int64_t examples() const override { return samples_.front().size() + collected_.front().size(); }

  // (tasks) the shared examples; groups are users. After keep_latest() they end with the latest ones.
  const std::vector<RankingSamples>& samples() const { return samples_; }
  // After keep_latest(): the sums over all examples of the first task. Else empty.
  const std::optional<LifetimeMetrics>& sums() const { return sums_; }

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
  std::vector<RankingSamples> collected_;  // (tasks) of this rank, not shared
  std::vector<std::int64_t> order_;        // of the collected examples among those of all ranks
  std::int64_t batches_ = 0;               // collected
  std::vector<RankingSamples> samples_;
  std::optional<LifetimeMetrics> sums_;
};

// InternalError for a tally of another objective.
const RankingTally& as_ranking(const Tally& tally);

}  // namespace hstu
