// The split into training and evaluation: a hold-out in time, of users, or of users in a time interval.
#pragma once

#include <cstdint>
#include <limits>

#include "hstu/batching/options.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// HoldoutOptions resolved to times. Training and evaluation are disjoint by construction.
struct Holdout {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t time_begin = kNever;  // events at or after never train; kNever: no hold-out in time
  std::int64_t time_end = kNever;    // evaluation ends before this; later events are not used
  UserSplit users;

  bool in_time() const { return time_begin != kNever; }
  bool of_users() const { return users.any_held_out(); }
  // `held_out` = users.holds_out(the event's user).
  bool trains(bool held_out, std::int64_t time) const { return !held_out && time < time_begin; }
  bool evaluates(bool held_out, std::int64_t time) const {
    if (of_users() && !held_out) return false;
    return in_time() ? time >= time_begin && time < time_end : held_out;
  }
};

// UsageError if more than one hold-out in time is set, a value is out of its range, or a window does not
// exist. A fraction is converted to a time by the times of the only window that it divides.
Holdout resolve_holdout(const Dataset& dataset, const AnchorIndex& index, const HoldoutOptions& options);

}  // namespace hstu
