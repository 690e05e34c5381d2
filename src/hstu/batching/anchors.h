// The anchors of a run: the events that a model ranks, by window of time, for training and for evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/batching/holdout.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

struct Anchors {
  std::int64_t count = 0;                   // of all, including those in neither list
  std::int64_t time_min = 0, time_max = 0;  // of all, seconds
  Holdout holdout;
  AnchorList training, evaluation;  // evaluation has all windows, and is empty without a hold-out
  // Windows of `training` by stage (ScheduleOptions::stages). The first has the windows of the data with
  // which a run began. A later one has what a hold-out in time no longer holds, and then the windows of the
  // segments that were added.
  std::vector<std::int64_t> stages;
};

// Reads the dataset's anchor index (builds it if it is missing: dataset/anchor_index.h) and divides it. Does
// not read windows that a hold-out in time takes or leaves completely; of the one that it divides, reads the
// anchors' times. Throws what open_anchor_index throws, and UsageError if the hold-out is contradictory or
// leaves no anchors for evaluation or, if the run `trains`, for training.
// `stages`: the segments that the run had in each stage, ascending; empty: one stage has all.
Anchors find_anchors(const Dataset& dataset, const DataOptions& options, const HoldoutOptions& holdout,
                     std::vector<std::size_t> stages = {}, bool trains = true);

}  // namespace hstu
