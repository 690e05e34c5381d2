#include "hstu/events/tie_order.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "hstu/base/random.h"

namespace hstu {
namespace {

using Rows = std::vector<std::uint32_t>;

Rows counted(std::int64_t begin, std::int64_t end) {
  Rows rows(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(begin));
  return rows;
}

// The columns that decide whether two events are tied.
struct TieKeys {
  std::vector<std::int64_t> user, time, nanoseconds;

  explicit TieKeys(const EventTable& events)
      : user(events.user.integers()),
        time(events.time.integers()),
        nanoseconds(events.nanoseconds.integers()) {
    nanoseconds.resize(user.size());
  }
  bool tied(std::size_t a, std::size_t b) const {
    return user[a] == user[b] && time[a] == time[b] && nanoseconds[a] == nanoseconds[b];
  }
};

}  // namespace

// Passes on the rows up to `end`, which is not inside a run of tied events unless it ends a part of one.
void TieShuffle::shuffle_and_pass(const EventTable& events, std::int64_t end) {
  const TieKeys times(events);
  Rows rows = counted(0, end);
  const auto size = static_cast<std::size_t>(end);
  const auto most = static_cast<std::size_t>(most_);
  auto part = static_cast<std::uint64_t>(parts_);
  for (std::size_t begin = 0; begin < size;) {
    if (begin > 0) part = times.tied(begin - 1, begin) ? part + 1 : 0;
    std::size_t next = begin + 1;
    while (next < size && next - begin < most && times.tied(begin, next)) ++next;
    RandomStream random{.key = derive_key(static_cast<std::uint64_t>(seed_), "ties"), .index = 0};
    for (const std::uint64_t word :
         {static_cast<std::uint64_t>(times.user[begin]), static_cast<std::uint64_t>(times.time[begin]),
          static_cast<std::uint64_t>(times.nanoseconds[begin]), part})
      random.key = mix64(random.key ^ word);
    for (std::size_t left = next - begin; left > 1; --left)
      std::swap(rows[begin + left - 1], rows[begin + random.below(left)]);
    begin = next;
  }
  pass_on(events.gather(rows));
}

void TieShuffle::append(EventTable events) {
  if (events.size() == 0) return;
  const std::int64_t before = held_.size();
  held_.append(events);
  const TieKeys times(held_);
  const auto last = static_cast<std::size_t>(held_.size() - 1);
  std::size_t begin = last;  // of the last run
  while (begin > 0 && times.tied(begin - 1, last)) --begin;
  if (begin > 0) {
    shuffle_and_pass(held_, static_cast<std::int64_t>(begin));
    held_ = held_.gather(counted(static_cast<std::int64_t>(begin), held_.size()));
  }
  if (begin > 0 || before == 0) parts_ = 0;
  while (held_.size() > most_) {
    shuffle_and_pass(held_, most_);
    held_ = held_.gather(counted(most_, held_.size()));
    ++parts_;
  }
}

void TieShuffle::finish() {
  shuffle_and_pass(held_, held_.size());
  held_ = EventTable();
}

void OrderTimes::append(EventTable events) {
  std::vector<std::int64_t> times;
  times.reserve(static_cast<std::size_t>(events.size()));
  for (const std::int64_t user : events.user.integers()) {
    if (user != user_) next_time_ = 0;
    user_ = user;
    times.push_back(next_time_++);
  }
  events.time = IntegerColumn();
  events.time.append(times);
  events.nanoseconds = IntegerColumn();
  pass_on(std::move(events));
}

}  // namespace hstu
