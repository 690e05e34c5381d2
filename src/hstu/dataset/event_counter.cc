#include "hstu/dataset/event_counter.h"

#include <algorithm>
#include <utility>

namespace hstu {

EventCounter::EventCounter(std::uint8_t label_bit, Path spill_folder, std::int64_t memory)
    : label_bit_(label_bit), items_(std::move(spill_folder), memory) {}

void EventCounter::add(const EventTable& events) {
  const int positive = kRankableBit | label_bit_;
  const auto& actions = events.action;
  counts_.events += events.size();
  counts_.rankable +=
      std::count_if(actions.begin(), actions.end(), [](int a) { return (a & kRankableBit) != 0; });
  counts_.positives +=
      std::count_if(actions.begin(), actions.end(), [&](int a) { return (a & positive) == positive; });
  items_.add(events.item);
  events.user.visit([&](const auto& users) {
    for (const auto value : users) {
      const auto user = static_cast<std::int64_t>(value);
      if (user != last_user_) ++counts_.users;
      last_user_ = user;
    }
  });
}

EventCounts EventCounter::counts() {
  counts_.items = items_.count();
  return counts_;
}

}  // namespace hstu
