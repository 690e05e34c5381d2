// Events of one user in the order of time, as ranges of positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hstu {

// Positions [begin, end) of a dataset.
struct PositionRange {
  std::int64_t begin = 0, end = 0;

  std::int64_t size() const { return end - begin; }
  bool contains(std::int64_t position) const { return begin <= position && position < end; }
  bool operator==(const PositionRange&) const = default;
};

// Ranges whose events follow one another in time. A dataset of one segment has one range for a user; a chain
// has one for each segment, or more where events of a later segment lie between those of an earlier one. It
// is a view of the dataset's index; copies are cheap.
class UserEvents {
 public:
  UserEvents() = default;
  UserEvents(PositionRange only) : last_(only) {}  // NOLINT(google-explicit-constructor): a range is events
  UserEvents(std::span<const PositionRange> earlier, PositionRange last) : earlier_(earlier), last_(last) {}

  std::size_t ranges() const { return earlier_.size() + 1; }
  PositionRange range(std::size_t r) const { return r < earlier_.size() ? earlier_[r] : last_; }
  PositionRange last_range() const { return last_; }
  // The first r ranges, and those of range r before position `end`.
  UserEvents first_ranges(std::size_t r, std::int64_t end) const {
    return {earlier_.first(r), {range(r).begin, end}};
  }

  std::int64_t size() const {
    std::int64_t events = last_.size();
    for (const PositionRange& range : earlier_) events += range.size();
    return events;
  }
  bool empty() const { return size() == 0; }

  // The position of the latest event; there is at least one.
  std::int64_t latest() const {
    std::size_t r = ranges() - 1;
    while (range(r).size() == 0) --r;
    return range(r).end - 1;
  }

  // Calls body(position) for each event, the earliest first.
  template <typename Body>
  void each(const Body& body) const {
    for (std::size_t r = 0; r < ranges(); ++r)
      for (std::int64_t p = range(r).begin; p < range(r).end; ++p) body(p);
  }

 private:
  std::span<const PositionRange> earlier_;
  PositionRange last_;
};

}  // namespace hstu
