// The trivial baseline that every model must exceed: running rates of the item and of the user.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/holdout.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// A rate is (positives + prior * global) / (events + prior): `prior` events at the global rate are added.
// The global rate itself is (positives + 1) / (events + 2).
inline constexpr double kUserPrior = 10, kItemPrior = 10;

struct BaselineScores {
  std::vector<double> score;        // logit(item's rate) + logit(user's rate)
  std::vector<double> probability;  // sigmoid(score - logit(global rate)): calibrated, for NE
};

// Scores the anchors at `positions`, in their order. Rates count the training events strictly before an
// anchor's time: rankable events, with any length of history, that the hold-out leaves to training. So the
// events of a held-out user do not count, and the user's rate is the global rate. One parallel pass over the
// dataset; the result does not depend on the number of threads.
BaselineScores score_baseline(const Dataset& dataset, const Holdout& holdout,
                              std::span<const std::int64_t> positions);

}  // namespace hstu
