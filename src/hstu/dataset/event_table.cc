#include "hstu/dataset/event_table.h"

#include <algorithm>

#include "hstu/base/error.h"

namespace hstu {

void EventTable::reserve(std::int64_t events) {
  user.reserve(events);
  time.reserve(events);
  item.reserve(events);
  action.reserve(static_cast<std::size_t>(events));
  for (IntegerColumn& column : context) column.reserve(events);
}

void EventTable::keep(const std::vector<bool>& mask) {
  user.keep(mask);
  time.keep(mask);
  item.keep(mask);
  for (IntegerColumn& column : context) column.keep(mask);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < action.size(); ++i) {
    if (mask[i]) action[kept++] = action[i];
  }
  action.resize(kept);
}

EventTable EventTable::select(const std::vector<bool>& mask) const {
  EventTable selected;
  selected.user = user.select(mask);
  selected.time = time.select(mask);
  selected.item = item.select(mask);
  for (const IntegerColumn& column : context) selected.context.push_back(column.select(mask));
  for (std::size_t i = 0; i < action.size(); ++i) {
    if (mask[i]) selected.action.push_back(action[i]);
  }
  return selected;
}

EventCounts count_events(const EventTable& events, std::uint8_t label_bit) {
  const int positive = kRankableBit | label_bit;
  const auto& actions = events.action;
  return {.events = events.size(),
          .users = count_distinct(events.user),
          .items = count_distinct(events.item),
          .rankable =
              std::count_if(actions.begin(), actions.end(), [](int a) { return (a & kRankableBit) != 0; }),
          .positives = std::count_if(actions.begin(), actions.end(),
                                     [&](int a) { return (a & positive) == positive; })};
}

TimeRange time_range(const EventTable& events) {
  require(events.size() > 0, "an empty table has no time range");
  return events.time.visit([](const auto& times) {
    const auto [first, last] = std::minmax_element(times.begin(), times.end());
    return TimeRange{.min = static_cast<std::int64_t>(*first), .max = static_cast<std::int64_t>(*last)};
  });
}

}  // namespace hstu
