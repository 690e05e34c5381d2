// The anchor index of a dataset: positions of all anchors by window, stored beside the columns, so that
// selecting a window, counting its anchors or starting in its middle reads no events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/floor_divide.h"
#include "hstu/dataset/anchor_list.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/user_split.h"

namespace hstu {

// An anchor is a rankable event with at least min_history earlier events, of any kind, of its user. Windows
// begin at time_min of the first segment and have window_seconds; no window has anchors of two segments.
struct AnchorRule {
  std::int64_t min_history = 0;
  std::int64_t window_seconds = 86'400;  // 0: one window
  UserSplit users;                       // decides the list of a user's anchors

  // The index's folder in DATASET/anchors: "m4086_w86400", "m0_w86400_u0.9_s7".
  std::string name() const;
  bool operator==(const AnchorRule&) const = default;
};

// Anchors of training users and of held-out users; both lists have all windows, W: those of the first
// segment, then those of the next. An event that came late is an anchor of the segment that brought it.
struct AnchorIndex {
  AnchorRule rule;
  std::int64_t time_min = 0, time_max = 0;  // seconds, of all anchors
  std::int64_t grid = 0;                    // begin of a window, from which all are counted
  AnchorList training_users, held_out_users;
  std::vector<TimeRange> times;               // (W) what anchors of a window can have
  std::vector<std::int64_t> segment_windows;  // (S) of each segment

  std::int64_t count() const { return training_users.size() + held_out_users.size(); }
  std::int64_t windows() const { return training_users.windows(); }
  // Of the grid: the number of the window that has a time, the first window's being 0, and its begin. They
  // are the lists' windows if there is one segment.
  std::int64_t window_of(std::int64_t time) const {
    return rule.window_seconds == 0 ? 0 : floor_divide(time - grid, rule.window_seconds);
  }
  std::int64_t window_begin(std::int64_t window) const { return grid + window * rule.window_seconds; }
};

inline constexpr const char* kAnchorFolder = "anchors";

// Opens the stored index without reading events. If there is none, builds and stores it first, with a note;
// two processes may do this at the same time. If it cannot be stored in the dataset's folder, it is built in
// memory (8 bytes per anchor), with a note on how to avoid this. UsageError if the rule is invalid or yields
// no anchor; Error for a stored index that is truncated, altered or of another dataset, and if a user's
// events are not in the order of time.
AnchorIndex open_anchor_index(const Dataset& dataset, const AnchorRule& rule);
// The same of the first `segments` segments.
AnchorIndex open_anchor_index(const Dataset& dataset, const AnchorRule& rule, std::size_t segments);

// The stored index; empty if a segment has none.
std::optional<AnchorIndex> read_anchor_index(const Dataset& dataset, const AnchorRule& rule);

// The rules of the stored indices of the first segment.
std::vector<AnchorRule> stored_anchor_rules(const Dataset& dataset);

// Reads the stored indices of segment `number` and compares them with their checksums. Returns their names.
// Throws Error naming the first file that differs.
std::vector<std::string> verify_anchor_indices(const Dataset& dataset, std::size_t number = 0);

}  // namespace hstu
