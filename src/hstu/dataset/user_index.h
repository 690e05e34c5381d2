// The users of all segments of a dataset, and where their events are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/dataset/mapped_column.h"
#include "hstu/dataset/segments.h"
#include "hstu/dataset/user_events.h"

namespace hstu {

// Of one segment it is a view of the segment's files. Of a chain it takes 16 bytes for each user and 16 for
// each user of each segment, and building it reads the times of users that are in several segments.
class UserIndex {
 public:
  // `time` has the positions of the segments. Both must outlive the index.
  UserIndex(std::span<const Segment> segments, const MappedColumn& time);

  std::int64_t users() const { return std::ssize(ids()); }  // U, distinct
  std::span<const std::int64_t> ids() const { return is_chain() ? ids_ : segments_.front().user_ids(); }
  // All events of user u.
  UserEvents events_of(std::int64_t user) const;
  // The segment, by its number, and the index u of the user of the event at `position`.
  std::size_t segment_at(std::int64_t position) const;
  std::int64_t user_at(std::int64_t position) const;

 private:
  bool is_chain() const { return segments_.size() > 1; }
  void add_ranges(std::span<const PositionRange> parts, const MappedColumn& time);

  std::span<const Segment> segments_;
  // Of a chain:
  std::vector<std::int64_t> ids_;      // (U)
  std::vector<std::int64_t> offsets_;  // (U + 1) ranges of user u: [o[u], o[u + 1])
  std::vector<PositionRange> ranges_;
};

}  // namespace hstu
