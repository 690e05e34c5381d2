#include "hstu/batching/event_lists.h"

#include <algorithm>

namespace hstu {

void EventLists::clear(std::size_t columns) {
  item_.clear(), time_.clear(), action_.clear();
  context_.resize(columns);
  for (auto& column : context_) column.clear();
}

// Calls body(to, from) for each column that `from` has.
template <typename Body>
void EventLists::append_columns(const EventColumns& from, const Body& body) {
  body(item_, from.item);
  body(time_, from.time);
  body(action_, from.action);
  for (std::size_t c = 0; c < context_.size(); ++c) {
    if (from.context[c].empty())
      context_[c].resize(item_.size());
    else
      body(context_[c], from.context[c]);
  }
}

void EventLists::append(const EventColumns& from, std::size_t begin, std::size_t end) {
  append_columns(from, [&](auto& to, const auto& column) {
    to.insert(to.end(), column.begin() + static_cast<std::ptrdiff_t>(begin),
              column.begin() + static_cast<std::ptrdiff_t>(end));
  });
}

void EventLists::append(const EventColumns& from, std::span<const std::int64_t> places) {
  append_columns(from, [&](auto& to, const auto& column) {
    const std::size_t old = to.size();
    to.resize(old + places.size());
    for (std::size_t i = 0; i < places.size(); ++i) to[old + i] = column[static_cast<std::size_t>(places[i])];
  });
}

void EventLists::append(const Dataset& from, const UserEvents& events, std::int64_t most) {
  const auto append_range = [](auto& to, const auto* elements, PositionRange range) {
    to.insert(to.end(), elements + range.begin, elements + range.end);
  };
  std::int64_t skip = std::max<std::int64_t>(0, events.size() - most);
  for (std::size_t r = 0; r < events.ranges(); ++r) {
    PositionRange range = events.range(r);
    const std::int64_t skipped = std::min(skip, range.size());
    range.begin += skipped, skip -= skipped;
    from.item().visit([&](const auto* elements) { append_range(item_, elements, range); });
    from.time().visit([&](const auto* elements) { append_range(time_, elements, range); });
    append_range(action_, from.action().data(), range);
    const std::vector<std::string>& names = from.manifest().context;
    for (std::size_t c = 0; c < context_.size(); ++c)
      if (c < names.size())
        from.context(names[c]).visit(
            [&](const auto* elements) { append_range(context_[c], elements, range); });
  }
  for (auto& column : context_) column.resize(item_.size());
}

void EventLists::view(EventColumns& columns) const {
  columns.item = item_, columns.time = time_, columns.action = action_;
  columns.context.assign(context_.begin(), context_.end());
}

}  // namespace hstu
