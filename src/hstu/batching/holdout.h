// Who trains and who evaluates: a hold-out in time, of users, or of users in a time.
#pragma once

#include <cstdint>
#include <limits>

#include "hstu/base/random.h"
#include "hstu/batching/anchor_scan.h"
#include "hstu/batching/options.h"

namespace hstu {

// Uniform in [0, 1), a function of the user's id and the salt alone (splitmix64).
inline double user_split_hash(std::int64_t user_id, std::int64_t salt) {
  const std::uint64_t z = mix64(static_cast<std::uint64_t>(user_id) + static_cast<std::uint64_t>(salt));
  return static_cast<double>(z >> 11) * 0x1p-53;
}

// HoldoutOptions resolved to times. Training and evaluation are disjoint by construction.
struct Holdout {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  std::int64_t time_begin = kNever;  // events at or after never train; kNever: no hold-out in time
  std::int64_t time_end = kNever;    // evaluation ends before this; what comes later serves nothing
  double train_user_fraction = 1;
  std::int64_t split_salt = 0;

  bool in_time() const { return time_begin != kNever; }
  bool of_users() const { return train_user_fraction < 1; }
  bool holds_out(std::int64_t user_id) const {
    return of_users() && user_split_hash(user_id, split_salt) >= train_user_fraction;
  }
  // `held_out` = holds_out(the event's user).
  bool trains(bool held_out, std::int64_t time) const { return !held_out && time < time_begin; }
  bool evaluates(bool held_out, std::int64_t time) const {
    if (of_users() && !held_out) return false;
    return in_time() ? time >= time_begin && time < time_end : held_out;
  }
};

// UsageError when more than one hold-out in time is asked for, a value is out of its range, or a window does
// not exist. A fraction becomes a time by two more walks over the anchors.
Holdout resolve_holdout(const Dataset& dataset, std::int64_t min_history, const AnchorSurvey& survey,
                        const HoldoutOptions& options);

}  // namespace hstu
