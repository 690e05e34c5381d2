// Builds the anchor index of a segment: two passes over its events, in blocks of users.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "hstu/dataset/anchor_index.h"

namespace hstu {

// The result of the first pass.
struct AnchorCounts {
  std::int64_t time_min = 0, time_max = 0;   // seconds, of all anchors
  std::int64_t first_window = 0;             // begin of the first window, seconds
  std::vector<std::int64_t> training_users;  // (W + 1) offsets: running sums over the windows
  std::vector<std::int64_t> held_out_users;  // (W + 1)
};

// Receives the positions of one list's anchors at [offset, offset + positions.size()) of the list. Called by
// several threads at the same time, for parts that do not overlap.
using PutPositions = std::function<void(std::int64_t offset, std::span<const std::int64_t> positions)>;

// The rule must be one that open_anchor_index accepts.
class AnchorBuilder {
 public:
  // Users are processed in blocks of at least `block_events` events, a few blocks per thread at a time. This
  // bounds the memory to 30 bytes for each event of these blocks. The result does not depend on it.
  static constexpr std::int64_t kBlockEvents = std::int64_t{1} << 19;
  // The events of segment `segment`; earlier ones are read where they count as earlier events of a user.
  // Windows are counted from `grid` (seconds), or from the first anchor.
  AnchorBuilder(const Dataset& dataset, std::size_t segment, const AnchorRule& rule,
                std::optional<std::int64_t> grid = std::nullopt, std::int64_t block_events = kBlockEvents);

  // The first pass. Error if the events of a user with candidates are not in the order of time. UsageError if
  // there are too many windows, or no anchor in the first segment; a later one has an empty window then.
  AnchorCounts count() const;

  // The second pass: passes every anchor to its place in its list.
  void place(const AnchorCounts& counts, const PutPositions& training_users,
             const PutPositions& held_out_users) const;

 private:
  const Dataset& dataset_;
  std::size_t segment_;
  AnchorRule rule_;
  std::optional<std::int64_t> grid_;
  std::vector<std::int64_t> blocks_;  // of users
};

}  // namespace hstu
