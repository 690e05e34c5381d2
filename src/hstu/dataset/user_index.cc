#include "hstu/dataset/user_index.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace hstu {
namespace {

// The first position of `range`, which is in the order of time, whose time is after `time`.
std::int64_t first_after(const MappedColumn& column, PositionRange range, std::int64_t time) {
  return column.visit([&](const auto* times) {
    return std::upper_bound(times + range.begin, times + range.end, time,
                            [](std::int64_t wanted, const auto value) {
                              return wanted < static_cast<std::int64_t>(value);
                            }) -
           times;
  });
}

// The first position of `range` whose time is not before `time`.
std::int64_t first_not_before(const MappedColumn& column, PositionRange range, std::int64_t time) {
  if (time == std::numeric_limits<std::int64_t>::min()) return range.begin;
  return first_after(column, range, time - 1);
}

}  // namespace

UserIndex::UserIndex(std::span<const Segment> segments, const MappedColumn& time) : segments_(segments) {
  if (!is_chain()) return;
  std::vector<std::int64_t> next(segments.size());  // users
  std::vector<PositionRange> parts;
  offsets_.push_back(0);
  for (;;) {
    std::optional<std::int64_t> id;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (next[s] == segments[s].users()) continue;
      const std::int64_t candidate = segments[s].user_ids()[static_cast<std::size_t>(next[s])];
      if (!id || candidate < *id) id = candidate;
    }
    if (!id) break;
    parts.clear();
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (next[s] == segments[s].users() || segments[s].user_ids()[static_cast<std::size_t>(next[s])] != *id)
        continue;
      parts.push_back(segments[s].events_of(next[s]++));
    }
    ids_.push_back(*id);
    add_ranges(parts, time);
    offsets_.push_back(std::ssize(ranges_));
  }
}

// Cuts the parts, one for each segment, where an event of another one comes between. Events of the same time
// are in the order of the segments.
void UserIndex::add_ranges(std::span<const PositionRange> parts, const MappedColumn& time) {
  std::vector<PositionRange> left(parts.begin(), parts.end());
  while (!left.empty()) {
    std::size_t first = 0;
    for (std::size_t s = 1; s < left.size(); ++s)
      if (time[left[s].begin] < time[left[first].begin]) first = s;
    // It continues until another part has an earlier event; at the same time, an earlier part comes first.
    PositionRange taken = left[first];
    for (std::size_t s = 0; s < left.size(); ++s) {
      if (s == first || taken.end == taken.begin) continue;
      const std::int64_t begin = time[left[s].begin];
      taken.end = std::min(taken.end, s < first ? first_not_before(time, left[first], begin)
                                                : first_after(time, left[first], begin));
    }
    ranges_.push_back(taken);
    left[first].begin = taken.end;
    if (left[first].size() == 0) left.erase(left.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

UserEvents UserIndex::events_of(std::int64_t user) const {
  if (!is_chain()) return segments_.front().events_of(user);
  const auto u = static_cast<std::size_t>(user);
  const auto ranges = std::span(ranges_).subspan(static_cast<std::size_t>(offsets_[u]),
                                                 static_cast<std::size_t>(offsets_[u + 1] - offsets_[u]));
  return {ranges.first(ranges.size() - 1), ranges.back()};
}

std::size_t UserIndex::segment_at(std::int64_t position) const {
  std::size_t s = segments_.size() - 1;
  while (s > 0 && position < segments_[s].first()) --s;
  return s;
}

std::int64_t UserIndex::user_at(std::int64_t position) const {
  const Segment& segment = segments_[segment_at(position)];
  const std::int64_t user = segment.user_at(position);
  if (!is_chain()) return user;
  return std::lower_bound(ids_.begin(), ids_.end(), segment.user_ids()[static_cast<std::size_t>(user)]) -
         ids_.begin();
}

}  // namespace hstu
