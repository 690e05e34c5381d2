// Iterates over users in blocks of about equal numbers of events.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/threads.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/segments.h"

namespace hstu {

// Bounds of blocks of users, b[0] = 0 to b.back() = U: block i has the users [b[i], b[i + 1]) and ends with
// the user that increases it to `events` events or more.
inline std::vector<std::int64_t> user_blocks(const Segment& segment, std::int64_t events) {
  const auto offsets = segment.user_offsets();
  std::vector<std::int64_t> borders{0};
  std::int64_t begin = 0;
  for (std::int64_t u = 0; u < segment.users(); ++u) {
    const std::int64_t end = offsets[static_cast<std::size_t>(u) + 1];
    if (end - begin < events && u + 1 < segment.users()) continue;
    borders.push_back(u + 1);
    begin = end;
  }
  return borders;
}

// The same over the users of a dataset, by all events of each.
inline std::vector<std::int64_t> user_blocks(const Dataset& dataset, std::int64_t events) {
  std::vector<std::int64_t> borders{0};
  std::int64_t count = 0;
  for (std::int64_t u = 0; u < dataset.users(); ++u) {
    count += dataset.events_of(u).size();
    if (count < events && u + 1 < dataset.users()) continue;
    borders.push_back(u + 1);
    count = 0;
  }
  return borders;
}

// Calls body(first_user, end_user) for every block, in parallel.
template <typename Body>
void parallel_user_blocks(const std::vector<std::int64_t>& borders, const Body& body) {
  parallel_blocks(static_cast<std::int64_t>(borders.size()) - 1, 1, [&](std::int64_t block, std::int64_t) {
    body(borders[static_cast<std::size_t>(block)], borders[static_cast<std::size_t>(block) + 1]);
  });
}

}  // namespace hstu
