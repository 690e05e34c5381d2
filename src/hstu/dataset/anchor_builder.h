// Builds anchor indices: two walks over the events, in blocks of users.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hstu/dataset/anchor_index.h"

namespace hstu {

// What the first walk finds out.
struct AnchorCounts {
  std::int64_t time_min = 0, time_max = 0;   // seconds, of all anchors
  std::vector<std::int64_t> training_users;  // (W + 1) offsets: running sums over the windows
  std::vector<std::int64_t> held_out_users;  // (W + 1)
};

// Takes positions of one list's anchors, to stand at [offset, offset + positions.size()) of it. Called by
// many threads at once, for parts that do not overlap.
using PutPositions = std::function<void(std::int64_t offset, std::span<const std::int64_t> positions)>;

// The rule is one that open_anchor_index accepts.
class AnchorBuilder {
 public:
  // Users are taken in blocks of `block_events` events or a little more, a few blocks a thread at a time:
  // that bounds the memory, 30 bytes an event of a block. The result does not depend on it.
  static constexpr std::int64_t kBlockEvents = std::int64_t{1} << 19;
  AnchorBuilder(const Dataset& dataset, const AnchorRule& rule, std::int64_t block_events = kBlockEvents);

  // The first walk. Checks that the events of every user who has enough of them stand in the order of time:
  // Error otherwise. UsageError when there is no anchor, or there are too many windows.
  AnchorCounts count() const;

  // The second walk: every anchor, to its place in its list.
  void place(const AnchorCounts& counts, const PutPositions& training_users,
             const PutPositions& held_out_users) const;

 private:
  const Dataset& dataset_;
  AnchorRule rule_;
  std::vector<std::int64_t> blocks_;  // of users
};

}  // namespace hstu
