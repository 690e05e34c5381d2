#include "hstu/score/request_events.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace hstu {
namespace {

// std::is_sorted without exits inside the loop, so that many times are compared at once.
bool are_in_order(std::span<const std::int64_t> times) {
  std::int64_t later = 0;
  for (std::size_t i = 1; i < times.size(); ++i) later |= times[i - 1] > times[i] ? 1 : 0;
  return later == 0;
}

}  // namespace

void CountedEvents::read(const RequestEvents& events, std::int64_t time, std::size_t columns) {
  const bool in_order = are_in_order(events.time);
  const std::size_t count =
      in_order ? static_cast<std::size_t>(std::ranges::lower_bound(events.time, time) - events.time.begin())
               : events.time.size();
  columns_.item = std::span(events.item).first(count);
  columns_.time = std::span(events.time).first(count);
  columns_.action = std::span(events.action).first(count);
  columns_.context.resize(columns);
  for (std::size_t c = 0; c < columns; ++c) {
    const bool has = !events.context.empty() && !events.context[c].empty();
    columns_.context[c] = has ? std::span(events.context[c]).first(count) : std::span<const std::int64_t>();
  }
  if (in_order) return;
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto time_of = [&](std::int64_t i) { return events.time[static_cast<std::size_t>(i)]; };
  std::erase_if(order, [&](std::int64_t i) { return time_of(i) >= time; });
  std::ranges::stable_sort(order, {}, time_of);
  copies_.clear(columns);
  copies_.append(columns_, order);
  copies_.view(columns_);
}

void CountedEvents::read(const Dataset& from, std::int64_t user, std::int64_t time, std::int64_t most,
                         std::size_t columns) {
  copies_.clear(columns);
  copies_.append(from, from.events_before_time(user, time), most);
  copies_.view(columns_);
}

UserEvents EventMemory::add(const EventColumns& events, std::int64_t begin) {
  const auto first = static_cast<std::int64_t>(events_.size());
  events_.append(events, static_cast<std::size_t>(begin), events.item.size());
  return PositionRange{first, static_cast<std::int64_t>(events_.size())};
}

void EventMemory::show() {
  events_.view(columns_);
  dataset_.show(columns_);
}

}  // namespace hstu
