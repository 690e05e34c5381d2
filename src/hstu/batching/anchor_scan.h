// Walks over a dataset's anchors user by user, in parallel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hstu/base/threads.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// What one walk over all anchors tells.
struct AnchorSurvey {
  std::int64_t count = 0;
  std::int64_t time_min = 0, time_max = 0;  // seconds; of anchors, not of events
  std::int64_t window_seconds = 0;          // 0: one window

  std::int64_t windows() const {
    return window_seconds == 0 ? 1 : (time_max - time_min) / window_seconds + 1;
  }
  std::int64_t window_of(std::int64_t time) const {
    return window_seconds == 0 ? 0 : (time - time_min) / window_seconds;
  }
};

// visit(position, time) for the anchors of one user, ascending: its rankable events that have at least
// min_history earlier events, of any kind.
template <typename Visit>
void visit_anchors(const Dataset& dataset, std::int64_t min_history, std::int64_t user, const Visit& visit) {
  const auto offsets = dataset.user_offsets().subspan(static_cast<std::size_t>(user), 2);
  const auto action = dataset.action();
  const std::int64_t first = offsets[0] + std::min(min_history, offsets[1] - offsets[0]);
  for (std::int64_t p = first; p < offsets[1]; ++p) {
    if (action[static_cast<std::size_t>(p)] & kRankableBit) visit(p, dataset.time()[p]);
  }
}

// body(block, first_user, end_user) over at most `blocks` blocks of users, in parallel.
template <typename Body>
void parallel_users(const Dataset& dataset, std::int64_t blocks, const Body& body) {
  const std::int64_t grain = std::max<std::int64_t>(1, (dataset.users() + blocks - 1) / blocks);
  parallel_blocks(dataset.users(), grain,
                  [&](std::int64_t begin, std::int64_t end) { body(begin / grain, begin, end); });
}

}  // namespace hstu
