// The split into training and evaluation: a hold-out in time, of users, of users in a time interval, or of
// each user's last anchors.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// Where an event is in the order of its user's events.
struct EventPlace {
  static constexpr std::int64_t kNowhere = std::numeric_limits<std::int64_t>::max();
  std::int64_t time = kNowhere, position = kNowhere;
  bool is_before(const EventPlace& other) const {
    return time < other.time || (time == other.time && position < other.position);
  }
};

// HoldoutOptions resolved to times. Training and evaluation are disjoint by construction.
struct Holdout {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t time_begin = kNever;  // events at or after never train; kNever: no hold-out in time
  std::int64_t time_end = kNever;    // evaluation ends before this; later events are not used
  UserSplit users = {};
  std::int64_t last = 0;  // anchors that are held out of each user
  // (U) with `last`: the first of them, or nowhere; else null.
  std::shared_ptr<const std::vector<EventPlace>> last_begin = {};

  // (U) with `last`, where not all of them are scored: the first that is, and the first after it that is not.
  std::shared_ptr<const std::vector<EventPlace>> scored_begin = {}, scored_end = {};

  bool in_time() const { return time_begin != kNever; }
  bool of_users() const { return users.any_held_out(); }
  bool of_last() const { return last_begin != nullptr; }
  // With `last`: whether an event is one of the last of user `user` (its index), or follows them.
  bool is_last(std::int64_t user, std::int64_t position, std::int64_t time) const {
    return !EventPlace{time, position}.is_before((*last_begin)[static_cast<std::size_t>(user)]);
  }
  // With `last`: whether an evaluation scores an event of user `user` (its index).
  bool is_scored(std::int64_t user, std::int64_t position, std::int64_t time) const {
    const EventPlace place{time, position};
    const auto u = static_cast<std::size_t>(user);
    if (scored_begin != nullptr && place.is_before((*scored_begin)[u])) return false;
    if (scored_end != nullptr && !place.is_before((*scored_end)[u])) return false;
    return is_last(user, position, time);
  }
  // Whether an event of user `user` (its index) is left to training. `held_out` = users.holds_out(the user).
  bool trains(std::int64_t user, bool held_out, std::int64_t position, std::int64_t time) const {
    if (of_last() && is_last(user, position, time)) return false;
    return !held_out && time < time_begin;
  }
};

// UsageError if more than one hold-out in time is set, a value is out of its range, or a window does not
// exist. A fraction is converted to a time by the times of the only window that it divides.
Holdout resolve_holdout(const Dataset& dataset, const AnchorIndex& index, const HoldoutOptions& options);

}  // namespace hstu
