// The anchors of a run: the events a model is asked to rank, in windows of time, split into training and
// evaluation.
#pragma once

#include <cstdint>

#include "hstu/batching/holdout.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

struct Anchors {
  std::int64_t count = 0;                   // of all, also those that neither train nor evaluate
  std::int64_t time_min = 0, time_max = 0;  // of all, seconds
  Holdout holdout;
  AnchorList training, evaluation;  // both have all windows; evaluation is empty when nothing is held out
};

// Reads the dataset's anchor index (building it when it is missing: dataset/anchor_index.h) and divides it.
// Windows that a hold-out in time takes or leaves whole are not looked at; of the one it cuts, the times of
// the anchors are read. Throws what open_anchor_index throws, and UsageError when the hold-out leaves nothing
// to train on or to evaluate or contradicts itself.
Anchors find_anchors(const Dataset& dataset, const DataOptions& options, const HoldoutOptions& holdout);

}  // namespace hstu
