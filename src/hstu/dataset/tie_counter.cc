#include "hstu/dataset/tie_counter.h"

#include <vector>

namespace hstu {

void TieCounter::add(const EventTable& events) {
  const std::vector<std::int64_t> users = events.user.integers(), times = events.time.integers();
  std::vector<std::int64_t> nanoseconds = events.nanoseconds.integers();
  nanoseconds.resize(users.size());
  for (std::size_t r = 0; r < users.size(); ++r) {
    const std::tuple event(users[r], times[r], nanoseconds[r]);
    if (last_ && std::get<0>(*last_) != users[r]) ties_.last_pairs += last_tied_ ? 1 : 0;
    last_tied_ = last_ == event;
    ties_.neighbours += last_tied_ ? 1 : 0;
    last_ = event;
  }
}

Ties TieCounter::ties() const {
  Ties ties = ties_;
  ties.last_pairs += last_tied_ ? 1 : 0;
  return ties;
}

}  // namespace hstu
