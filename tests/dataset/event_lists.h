// Events as a list, for tests that look at single ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/dataset/event_table.h"

namespace hstu {

struct Event {
  std::int64_t user, time, item, action, context;
  bool operator==(const Event&) const = default;
};

inline EventTable table_of(const std::vector<Event>& events) {
  EventTable table;
  table.context.resize(1);
  for (const Event& event : events) {
    table.user.append(std::span(&event.user, 1));
    table.time.append(std::span(&event.time, 1));
    table.item.append(std::span(&event.item, 1));
    table.action.push_back(static_cast<std::uint8_t>(event.action));
    table.context[0].append(std::span(&event.context, 1));
  }
  return table;
}

// Many users with few distinct times, so that order within ties matters; the item names the event.
inline std::vector<Event> random_events(std::int64_t count, std::uint64_t seed = 7) {
  RandomStream random{.key = seed};
  std::vector<Event> events;
  for (std::int64_t i = 0; i < count; ++i) {
    events.push_back({.user = static_cast<std::int64_t>(random.below(200)) * 10,
                      .time = static_cast<std::int64_t>(random.below(50)),
                      .item = i,
                      .action = static_cast<std::int64_t>(random.below(4)),
                      .context = static_cast<std::int64_t>(random.below(300))});
  }
  return events;
}

// A sink that keeps what it is given.
class EventList : public EventSink {
 public:
  void append(EventTable table) override {
    for (std::int64_t i = 0; i < table.size(); ++i) {
      events.push_back({.user = table.user[i],
                        .time = table.time[i],
                        .item = table.item[i],
                        .action = table.action[static_cast<std::size_t>(i)],
                        .context = table.context[0][i]});
    }
    largest_table = std::max(largest_table, table.size());
  }
  std::vector<Event> events;
  std::int64_t largest_table = 0;
};

}  // namespace hstu
