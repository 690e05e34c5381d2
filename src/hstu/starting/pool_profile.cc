#include "hstu/starting/pool_profile.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

namespace hstu {
namespace {

constexpr std::int64_t kReadEvents = 5'000'000;

// What is counted of one pool.
struct Sums {
  std::uint8_t bits = 0;
  std::int64_t events = 0, users = 0;
  double earlier = 0, full = 0;
};

void add_user(const Dataset& dataset, const UserEvents& events, std::int64_t room, Sums& sums) {
  std::int64_t before = 0;
  events.each([&](std::int64_t p) {
    const std::uint8_t action = dataset.action()[static_cast<std::size_t>(p)];
    if ((action & kRankableBit) != 0) {
      sums.earlier += static_cast<double>(before);
      if (room > 0) sums.full += static_cast<double>(std::min(before, room)) / static_cast<double>(room);
    }
    if ((action & sums.bits) != 0) ++before;
  });
  sums.events += before;
  sums.users += before > 0 ? 1 : 0;
}

}  // namespace

std::vector<PoolProfile> profile_pools(const Dataset& dataset,
                                       const std::vector<std::vector<std::string>>& pools,
                                       std::int64_t room) {
  std::vector<Sums> sums(pools.size());
  for (std::size_t i = 0; i < pools.size(); ++i)
    for (const std::string& action : pools[i])
      sums[i].bits = static_cast<std::uint8_t>(sums[i].bits | dataset.manifest().action_bit(action));
  const std::int64_t stride = std::max<std::int64_t>(1, (dataset.events() + kReadEvents - 1) / kReadEvents);
  std::int64_t users = 0, to_rank = 0;
  for (std::int64_t u = 0; u < dataset.users(); u += stride) {
    const UserEvents events = dataset.events_of(u);
    ++users;
    events.each([&](std::int64_t p) {
      if ((dataset.action()[static_cast<std::size_t>(p)] & kRankableBit) != 0) ++to_rank;
    });
    for (Sums& of_pool : sums) add_user(dataset, events, room, of_pool);
  }
  const auto mean = [](double sum, std::int64_t n) { return n > 0 ? sum / static_cast<double>(n) : 0; };
  std::vector<PoolProfile> profiles;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    profiles.push_back({.pool = fmt::format("{}", fmt::join(pools[i], " or ")),
                        .events = sums[i].events * stride,
                        .users = mean(static_cast<double>(sums[i].users), users),
                        .earlier = mean(sums[i].earlier, to_rank),
                        .full = mean(sums[i].full, to_rank)});
  }
  return profiles;
}

UserProfile profile_users(const Dataset& dataset) {
  std::vector<std::int64_t> counts;
  counts.reserve(static_cast<std::size_t>(dataset.users()));
  for (std::int64_t u = 0; u < dataset.users(); ++u) counts.push_back(dataset.events_of(u).size());
  if (counts.empty()) return {};
  std::sort(counts.begin(), counts.end());
  return {counts[counts.size() / 2], counts[counts.size() * 9 / 10], counts.back()};
}

}  // namespace hstu
