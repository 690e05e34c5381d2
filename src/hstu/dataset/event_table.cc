#include "hstu/dataset/event_table.h"

namespace hstu {

std::int64_t EventTable::bytes() const {
  std::int64_t sum = user.bytes() + time.bytes() + nanoseconds.bytes() + item.bytes() + size();
  for (const IntegerColumn& column : context) sum += column.bytes();
  return sum;
}

void EventTable::append(const EventTable& events) {
  const bool fine = nanoseconds.size() > 0 || events.nanoseconds.size() > 0;
  if (fine) nanoseconds.resize(size());
  if (fine) nanoseconds.append(events.nanoseconds.integers());
  user.append(events.user.integers());
  time.append(events.time.integers());
  item.append(events.item.integers());
  context.resize(events.context.size());
  for (std::size_t c = 0; c < context.size(); ++c) context[c].append(events.context[c].integers());
  action.insert(action.end(), events.action.begin(), events.action.end());
  if (fine) nanoseconds.resize(size());
}

void EventTable::keep(std::span<const std::uint8_t> mask) {
  user.keep(mask);
  time.keep(mask);
  if (nanoseconds.size() > 0) nanoseconds.keep(mask);
  item.keep(mask);
  for (IntegerColumn& column : context) column.keep(mask);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < action.size(); ++i) {
    if (mask[i] != 0) action[kept++] = action[i];
  }
  action.resize(kept);
}

EventTable EventTable::gather(std::span<const std::uint32_t> rows) const {
  EventTable gathered{.user = user.gather(rows),
                      .time = time.gather(rows),
                      .nanoseconds = IntegerColumn(),
                      .item = item.gather(rows),
                      .action = {},
                      .context = {}};
  if (nanoseconds.size() > 0) gathered.nanoseconds = nanoseconds.gather(rows);
  gathered.action.reserve(rows.size());
  for (const std::uint32_t row : rows) gathered.action.push_back(action[row]);
  for (const IntegerColumn& column : context) gathered.context.push_back(column.gather(rows));
  return gathered;
}

}  // namespace hstu
