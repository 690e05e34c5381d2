// Anchors: the events a model is asked to rank, in windows of time, split into training and evaluation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/holdout.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// Positions of anchors by window, ascending inside a window (user-major, not by time). W windows.
struct AnchorList {
  std::vector<std::int64_t> positions;
  std::vector<std::int64_t> offsets;  // (W + 1) window w holds positions [offsets[w], offsets[w + 1])

  std::int64_t size() const { return static_cast<std::int64_t>(positions.size()); }
  std::int64_t windows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  std::span<const std::int64_t> window(std::int64_t w) const {
    const auto index = static_cast<std::size_t>(w);
    return std::span(positions).subspan(static_cast<std::size_t>(offsets[index]),
                                        static_cast<std::size_t>(offsets[index + 1] - offsets[index]));
  }
};

struct Anchors {
  std::int64_t count = 0;                   // of all, also those that neither train nor evaluate
  std::int64_t time_min = 0, time_max = 0;  // of all, seconds
  std::int64_t window_seconds = 0;          // 0: one window
  Holdout holdout;
  AnchorList training, evaluation;  // evaluation is empty when nothing is held out
};

// An anchor is a rankable event with at least options.min_history earlier events (of any kind) of its user.
// Window w holds the times [time_min + w * window_seconds, time_min + (w + 1) * window_seconds).
// Walks over the events in parallel; memory: 8 bytes an anchor.
// Error when a user's events are not in chronological order; UsageError when there is no anchor, when the
// hold-out leaves nothing to train on or to evaluate, or when options contradict each other.
Anchors find_anchors(const Dataset& dataset, const DataOptions& options, const HoldoutOptions& holdout);

}  // namespace hstu
