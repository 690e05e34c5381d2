#include "hstu/score/request_events.h"

#include <algorithm>
#include <numeric>

namespace hstu {

void RequestHistories::clear() {
  item_.clear(), time_.clear(), action_.clear();
  for (auto& column : context_) column.clear();
}

UserEvents RequestHistories::add(const RequestEvents& events, std::int64_t time) {
  const std::int64_t first = std::ssize(item_);
  if (std::ranges::is_sorted(events.time) && (events.time.empty() || events.time.back() < time)) {
    const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(item_, events.item), append(time_, events.time), append(action_, events.action);
    for (std::size_t c = 0; c < context_.size(); ++c) {
      if (events.context.empty() || events.context[c].empty())
        context_[c].resize(item_.size());
      else
        append(context_[c], events.context[c]);
    }
    return since(first);
  }
  std::vector<std::size_t> order(events.item.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return events.time[i] >= time; });
  const auto is_earlier = [&](std::size_t a, std::size_t b) { return events.time[a] < events.time[b]; };
  std::ranges::stable_sort(order, is_earlier);
  for (const std::size_t i : order) {
    item_.push_back(events.item[i]);
    time_.push_back(events.time[i]);
    action_.push_back(events.action[i]);
    for (std::size_t c = 0; c < context_.size(); ++c)
      context_[c].push_back(events.context.empty() || events.context[c].empty() ? 0 : events.context[c][i]);
  }
  return since(first);
}

UserEvents RequestHistories::add(const Dataset& from, std::int64_t user, std::int64_t time,
                                 std::int64_t most) {
  const UserEvents events = from.events_before_time(user, time);
  std::vector<const MappedColumn*> columns;
  for (const std::string& name : from.manifest().context) columns.push_back(&from.context(name));
  const std::int64_t begin = std::ssize(item_);
  std::int64_t skip = std::max<std::int64_t>(0, events.size() - most);
  events.each([&](std::int64_t p) {
    if (skip-- > 0) return;
    item_.push_back(from.item()[p]);
    time_.push_back(from.time()[p]);
    action_.push_back(from.action()[static_cast<std::size_t>(p)]);
    for (std::size_t c = 0; c < context_.size(); ++c)
      context_[c].push_back(c < columns.size() ? (*columns[c])[p] : 0);
  });
  return since(begin);
}

void RequestHistories::show() {
  EventColumns events{.item = item_, .time = time_, .action = action_, .context = {}};
  events.context.assign(context_.begin(), context_.end());
  dataset_.show(events);
}

}  // namespace hstu
