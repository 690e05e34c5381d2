// The split of users into training users and held-out users.
#pragma once

#include <cstdint>

#include "hstu/base/random.h"

namespace hstu {

// Uniform in [0, 1), a function of the user's id and the salt alone (splitmix64).
inline double user_split_hash(std::int64_t user_id, std::int64_t salt) {
  const std::uint64_t z = mix64(static_cast<std::uint64_t>(user_id) + static_cast<std::uint64_t>(salt));
  return static_cast<double>(z >> 11) * 0x1p-53;
}

// Users whose hash is below `train_fraction` train, the others are held out. 1: no user is held out.
struct UserSplit {
  double train_fraction = 1;
  std::int64_t salt = 0;

  bool any_held_out() const { return train_fraction < 1; }
  bool holds_out(std::int64_t user_id) const {
    return any_held_out() && user_split_hash(user_id, salt) >= train_fraction;
  }
  bool operator==(const UserSplit&) const = default;
};

}  // namespace hstu
