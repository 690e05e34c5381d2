#include "hstu/events/duplicate_filter.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::size_t kFewBuckets = 1024;
constexpr std::int64_t kSeenBytes = 40;  // of an event that has been seen, approximately

std::int64_t nanoseconds_of(const EventTable& events, std::int64_t row) {
  return events.nanoseconds.size() > 0 ? events.nanoseconds[row] : 0;
}

EventTable rows_of(const EventTable& events, std::int64_t begin, std::int64_t end) {
  std::vector<std::uint32_t> rows(static_cast<std::size_t>(end - begin));
  std::iota(rows.begin(), rows.end(), static_cast<std::uint32_t>(begin));
  return events.gather(rows);
}

}  // namespace

std::size_t DuplicateFilter::Same::operator()(Place place) const {
  const EventTable& events = filter->held_[place.table];
  const auto item = static_cast<std::uint64_t>(events.item[place.row]);
  if (filter->rules_.duplicates_of == SameEvent::kItem) return mix64(item);
  return mix64(item ^ mix64(static_cast<std::uint64_t>(events.time[place.row])));
}

bool DuplicateFilter::Same::operator()(Place a, Place b) const {
  const EventTable &first = filter->held_[a.table], &second = filter->held_[b.table];
  if (first.item[a.row] != second.item[b.row]) return false;
  if (filter->rules_.duplicates_of == SameEvent::kItem) return true;
  if (first.time[a.row] != second.time[b.row] ||
      nanoseconds_of(first, a.row) != nanoseconds_of(second, b.row) ||
      first.action[a.row] != second.action[b.row])
    return false;
  for (std::size_t c = 0; c < first.context.size(); ++c)
    if (first.context[c][a.row] != second.context[c][b.row]) return false;
  return true;
}

DuplicateFilter::DuplicateFilter(const EventFilters& rules, std::int64_t memory, EventSink& next)
    : EventStage(next), rules_(rules), memory_(memory), seen_(0, Same{this}, Same{this}) {}

void DuplicateFilter::hold(EventTable events) {
  if (events.size() == 0) return;
  bytes_ += events.bytes() + events.size() * kSeenBytes;
  check(bytes_ <= memory_,
        "user {}: its events take more than {} to be compared with each other (duplicates): increase "
        "--memory, or leave out such users by a condition of keep",
        events.user[0], human_bytes(static_cast<double>(memory_)));
  held_.push_back(std::move(events));
}

void DuplicateFilter::append(EventTable events) {
  if (events.size() == 0) return;
  const std::int64_t last_user = events.user[events.size() - 1];
  if (!held_.empty() && held_.back().user[0] == last_user) return hold(std::move(events));
  std::int64_t begin = events.size() - 1;  // of the last user
  while (begin > 0 && events.user[begin - 1] == last_user) --begin;
  EventTable rest = rows_of(events, begin, events.size());
  if (begin > 0) held_.push_back(rows_of(events, 0, begin));
  release();
  hold(std::move(rest));
}

void DuplicateFilter::look_at(Place place, std::vector<std::uint8_t>& keep) {
  if (seen_.insert(place).second) return;
  ++duplicates_;
  if (rules_.duplicates != Duplicates::kCount) keep[place.row] = 0;
}

// All events of the users in the tables that are held.
void DuplicateFilter::release() {
  std::vector<std::vector<std::uint8_t>> keep;
  for (const EventTable& events : held_) keep.emplace_back(static_cast<std::size_t>(events.size()), 1);
  std::int64_t user = -1;
  const auto look = [&](std::size_t table, std::int64_t row) {
    if (const std::int64_t next = held_[table].user[row]; next != user) {
      user = next;
      if (seen_.bucket_count() > kFewBuckets) seen_ = Seen(0, Same{this}, Same{this});
      seen_.clear();
    }
    look_at({.table = static_cast<std::uint32_t>(table), .row = static_cast<std::uint32_t>(row)},
            keep[table]);
  };
  if (rules_.duplicates == Duplicates::kLast) {
    for (std::size_t t = held_.size(); t-- > 0;)
      for (std::int64_t r = held_[t].size(); r-- > 0;) look(t, r);
  } else {
    for (std::size_t t = 0; t < held_.size(); ++t)
      for (std::int64_t r = 0; r < held_[t].size(); ++r) look(t, r);
  }
  seen_.clear();
  for (std::size_t t = 0; t < held_.size(); ++t) {
    if (std::find(keep[t].begin(), keep[t].end(), 0) != keep[t].end()) held_[t].keep(keep[t]);
    pass_on(std::move(held_[t]));
  }
  held_.clear();
  bytes_ = 0;
}

void DuplicateFilter::finish() {
  release();
}

}  // namespace hstu
