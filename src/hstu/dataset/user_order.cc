#include "hstu/dataset/user_order.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

namespace hstu {
namespace {

using RowOrder = std::vector<std::uint32_t>;

std::uint64_t distance(std::int64_t from, std::int64_t to) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

// If user, time and row fit into 64 bits together (they usually do), one number is the sort key of an event.
bool sort_packed(const std::vector<std::int64_t>& users, const std::vector<std::int64_t>& times,
                 RowOrder& rows) {
  const auto [first_user, last_user] = std::minmax_element(users.begin(), users.end());
  const auto [first_time, last_time] = std::minmax_element(times.begin(), times.end());
  const int row_bits = std::bit_width(users.size() - 1);
  const int time_bits = std::bit_width(distance(*first_time, *last_time));
  if (std::bit_width(distance(*first_user, *last_user)) + time_bits + row_bits > 64) return false;
  // A shift by 64 is undefined; it would occur if all users (or times) were equal.
  const auto shifted = [](std::uint64_t value, int bits) { return bits < 64 ? value << bits : 0; };
  std::vector<std::uint64_t> keys(users.size());
  for (std::size_t r = 0; r < keys.size(); ++r) {
    keys[r] = shifted(distance(*first_user, users[r]), time_bits + row_bits) |
              shifted(distance(*first_time, times[r]), row_bits) | r;
  }
  std::sort(keys.begin(), keys.end());
  const std::uint64_t row_mask = (std::uint64_t{1} << row_bits) - 1;
  std::transform(keys.begin(), keys.end(), rows.begin(),
                 [&](std::uint64_t key) { return static_cast<std::uint32_t>(key & row_mask); });
  return true;
}

struct Key {
  std::int64_t user, time, nanoseconds;
  std::uint32_t row;
  bool operator<(const Key& other) const {
    return std::tie(user, time, nanoseconds, row) <
           std::tie(other.user, other.time, other.nanoseconds, other.row);
  }
};

std::vector<Key> keys_of(const EventTable& events) {
  const std::vector<std::int64_t> users = events.user.integers(), times = events.time.integers();
  std::vector<std::int64_t> nanoseconds = events.nanoseconds.integers();
  nanoseconds.resize(users.size());
  std::vector<Key> keys(users.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = {users[i], times[i], nanoseconds[i], static_cast<std::uint32_t>(i)};
  return keys;
}

void sort_by_keys(const EventTable& events, RowOrder& rows) {
  std::vector<Key> keys = keys_of(events);
  std::sort(keys.begin(), keys.end());
  std::transform(keys.begin(), keys.end(), rows.begin(), [](const Key& key) { return key.row; });
}

}  // namespace

bool is_ordered(const EventTable& events) {
  if (events.nanoseconds.size() > 0) {
    const std::vector<Key> keys = keys_of(events);
    return std::is_sorted(keys.begin(), keys.end());
  }
  return events.user.visit([&](const auto& users) {
    return events.time.visit([&](const auto& times) {
      for (std::size_t i = 1; i < users.size(); ++i) {
        if (users[i] < users[i - 1] || (users[i] == users[i - 1] && times[i] < times[i - 1])) return false;
      }
      return true;
    });
  });
}

EventTable ordered(const EventTable& events) {
  RowOrder rows(static_cast<std::size_t>(events.size()));
  if (rows.empty()) return events;
  if (events.nanoseconds.size() > 0 || !sort_packed(events.user.integers(), events.time.integers(), rows))
    sort_by_keys(events, rows);
  return events.gather(rows);
}

}  // namespace hstu
