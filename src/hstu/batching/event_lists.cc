#include "hstu/batching/event_lists.h"

#include <algorithm>

namespace hstu {
namespace {

// Calls body(to, from) for each column; a context column without elements has an empty span.
template <typename T, typename Column>
void append_part(std::vector<T>& to, const Column& from, std::size_t begin, std::size_t end) {
  to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(begin),
            from.begin() + static_cast<std::ptrdiff_t>(end));
}

template <typename T, typename Column>
void append_places(std::vector<T>& to, const Column& from, std::span<const std::int64_t> places) {
  const std::size_t old = to.size();
  to.resize(old + places.size());
  for (std::size_t i = 0; i < places.size(); ++i) to[old + i] = from[static_cast<std::size_t>(places[i])];
}

}  // namespace

void EventLists::clear(std::size_t columns) {
  item_.clear(), time_.clear(), action_.clear();
  context_.resize(columns);
  for (auto& column : context_) column.clear();
}

void EventLists::append(const EventColumns& from, std::size_t begin, std::size_t end) {
  append_part(item_, from.item, begin, end);
  append_part(time_, from.time, begin, end);
  append_part(action_, from.action, begin, end);
  for (std::size_t c = 0; c < context_.size(); ++c) {
    if (from.context[c].empty())
      context_[c].resize(item_.size());
    else
      append_part(context_[c], from.context[c], begin, end);
  }
}

void EventLists::append(const EventColumns& from, std::span<const std::int64_t> places) {
  append_places(item_, from.item, places);
  append_places(time_, from.time, places);
  append_places(action_, from.action, places);
  for (std::size_t c = 0; c < context_.size(); ++c) {
    if (from.context[c].empty())
      context_[c].resize(item_.size());
    else
      append_places(context_[c], from.context[c], places);
  }
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
