#include "hstu/dataset/user_order.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "hstu/base/progress.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kProgressStep = std::int64_t{1} << 20;

bool is_ordered(const EventTable& events) {
  for (std::int64_t i = 1; i < events.size(); ++i) {
    const std::int64_t before = events.user[i - 1];
    const std::int64_t user = events.user[i];
    if (user < before || (user == before && events.time[i] < events.time[i - 1])) return false;
  }
  return true;
}

UserOrder borders_of_ordered(const EventTable& events) {
  UserOrder order;
  for (std::int64_t i = 0; i < events.size(); ++i) {
    const std::int64_t user = events.user[i];
    if (!order.user_ids.empty() && order.user_ids.back() == user) continue;
    order.user_ids.push_back(user);
    order.offsets.push_back(i);
  }
  order.offsets.push_back(events.size());
  return order;
}

// Row lists of the users, in the order of the log.
UserOrder group_by_user(const EventTable& events, Progress& progress) {
  std::unordered_map<std::int64_t, std::int64_t> counts;
  for (std::int64_t i = 0; i < events.size(); ++i) ++counts[events.user[i]];

  UserOrder order;
  for (const auto& [user, count] : counts) order.user_ids.push_back(user);
  std::sort(order.user_ids.begin(), order.user_ids.end());

  std::unordered_map<std::int64_t, std::int64_t>& next =
      counts;  // From here on: the user's next flat position.
  std::int64_t position = 0;
  for (const std::int64_t user : order.user_ids) {
    order.offsets.push_back(position);
    position += std::exchange(next[user], position);
  }
  order.offsets.push_back(position);

  order.rows.resize(static_cast<std::size_t>(events.size()));
  for (std::int64_t i = 0; i < events.size(); ++i) {
    order.rows[static_cast<std::size_t>(next[events.user[i]]++)] = i;
    if (i % kProgressStep == 0) progress.advance_to(i);
  }
  return order;
}

}  // namespace

UserOrder order_by_user_and_time(const EventTable& events) {
  if (is_ordered(events)) return borders_of_ordered(events);
  Progress progress("ordering", events.size(), "events");
  UserOrder order = group_by_user(events, progress);
  const auto earlier = [&](std::int64_t a, std::int64_t b) { return events.time[a] < events.time[b]; };
  constexpr std::int64_t kUsersPerBlock = 64;
  parallel_blocks(static_cast<std::int64_t>(order.user_ids.size()), kUsersPerBlock,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t u = begin; u < end; ++u) {
                      const auto first = order.rows.begin() + order.offsets[static_cast<std::size_t>(u)];
                      const auto last = order.rows.begin() + order.offsets[static_cast<std::size_t>(u) + 1];
                      if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
                    }
                  });
  progress.advance_to(events.size());
  progress.finish();
  return order;
}

}  // namespace hstu
