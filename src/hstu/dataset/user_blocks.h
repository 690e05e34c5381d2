// Iterates over users in blocks of about equal numbers of events.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/segments.h"

namespace hstu {

// Bounds of blocks of `users` users, b[0] = 0 to b.back() = users: block i has the users [b[i], b[i + 1]) and
// ends with the user that increases it to `events` events or more. events_of(u): of one user.
template <typename EventsOf>
std::vector<std::int64_t> user_blocks(std::int64_t users, std::int64_t events, const EventsOf& events_of) {
  std::vector<std::int64_t> borders{0};
  std::int64_t count = 0;
  for (std::int64_t u = 0; u < users; ++u) {
    count += events_of(u).size();
    if (count < events && u + 1 < users) continue;
    borders.push_back(u + 1);
    count = 0;
  }
  return borders;
}
inline std::vector<std::int64_t> user_blocks(const Segment& segment, std::int64_t events) {
  return user_blocks(segment.users(), events, [&](std::int64_t u) { return segment.events_of(u); });
}
inline std::vector<std::int64_t> user_blocks(const Dataset& dataset, std::int64_t events) {
  return user_blocks(dataset.users(), events, [&](std::int64_t u) { return dataset.events_of(u); });
}

// Calls body(first_user, end_user) for every block, in parallel.
template <typename Body>
void parallel_user_blocks(const std::vector<std::int64_t>& borders, const Body& body) {
  parallel_blocks(static_cast<std::int64_t>(borders.size()) - 1, 1, [&](std::int64_t block, std::int64_t) {
    body(borders[static_cast<std::size_t>(block)], borders[static_cast<std::size_t>(block) + 1]);
  });
}

}  // namespace hstu
