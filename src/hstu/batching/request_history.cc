#include "hstu/batching/request_history.h"

#include <algorithm>

namespace hstu {
namespace {

// Without an exit inside the loop, so that many events are read at once.
bool all_have(std::span<const std::uint8_t> actions, std::uint8_t bits) {
  std::uint8_t without = 0;
  for (const std::uint8_t action : actions)
    without = static_cast<std::uint8_t>(without | ((action & bits) == 0 ? 1 : 0));
  return without == 0;
}

}  // namespace

void RequestHistory::select(const EventColumns& events, const HistoryRule& rule) {
  const std::size_t count = events.item.size(),
                    last = std::min(count, static_cast<std::size_t>(rule.longest)), first = count - last;
  if (!rule.pool_capped && all_have(events.action.last(last), rule.pool_bits)) {
    events_.item = events.item.last(last);
    events_.time = events.time.last(last);
    events_.action = events.action.last(last);
    events_.context.clear();
    for (const auto& column : events.context)
      events_.context.push_back(column.empty() ? column : column.subspan(first));
    return;
  }
  HistoryGatherer gatherer(events.action, {}, rule);
  copies_.clear(events.context.size());
  copies_.append(events, gatherer.gather(PositionRange{0, static_cast<std::int64_t>(count)}));
  copies_.view(events_);
}

}  // namespace hstu
