// How many events the pools of histories have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/dataset/dataset.h"

namespace hstu {

struct PoolProfile {
  std::string pool;         // actions with " or " between them
  std::int64_t events = 0;  // an estimate for large datasets
  double users = 0;         // the share of users with such an event
  double earlier = 0;       // such events before an event to rank, on average over those
  double full = 0;          // on average, the share of `room` that they fill; 0 without a room
};

// One profile for each list of actions: an event is of a pool if it has one of its actions. `room`: events of
// a pool that a history takes; 0: any number. Reads the actions of up to five million events of whole users.
std::vector<PoolProfile> profile_pools(const Dataset& dataset,
                                       const std::vector<std::vector<std::string>>& pools, std::int64_t room);

// Events of a user: the median, that of nine users in ten, the most.
struct UserProfile {
  std::int64_t median = 0, long_one = 0, most = 0;
};
UserProfile profile_users(const Dataset& dataset);

}  // namespace hstu
