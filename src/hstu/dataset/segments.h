// The folders of a dataset. `prepare --append` adds a segment with the new events; nothing older changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/npy.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/user_events.h"

namespace hstu {

inline constexpr const char* kSegmentsFolder = "segments";

// Segment `number`, from 1, of the dataset in `folder`: FOLDER/segments/0001.
Path segment_folder(const Path& folder, std::int64_t number);

// A folder and its own manifest.
struct SegmentFolder {
  Path folder;
  Manifest manifest;
};

// The dataset's folder, then its segments in the order in which they were appended. UsageError if the folder
// is not a dataset, Error if a segment extends other data than those before it.
std::vector<SegmentFolder> read_segments(const Path& dataset);
// Those of them that made the dataset `id`, before later ones were appended; all, if it never had this id.
std::vector<SegmentFolder> read_segments(const Path& dataset, const std::string& id);

// The manifest of all segments together: sums of counts, the widest types and ranges of columns, the id of
// the last segment, and its rules. Checksums and sizes of files are those of the single segments, and empty
// here.
Manifest manifest_of(const std::vector<SegmentFolder>& segments);

// The position of the first event of each segment, and the end of the last. Segments begin at multiples of
// 65,536; no event has the positions between two segments.
std::vector<std::int64_t> segment_positions(const std::vector<SegmentFolder>& segments);

// The users of an open segment.
class Segment {
 public:
  // `first`: the position of its first event.
  Segment(const SegmentFolder& segment, std::int64_t first);

  const Path& folder() const { return folder_; }
  std::int64_t first() const { return first_; }
  std::int64_t end() const { return first_ + user_offsets_.values().back(); }
  std::int64_t users() const { return user_ids_.size(); }                        // U
  std::span<const std::int64_t> user_ids() const { return user_ids_.values(); }  // (U) ascending
  // (U + 1) events of user u: [o[u], o[u + 1]), counted from the segment's first event.
  std::span<const std::int64_t> user_offsets() const { return user_offsets_.values(); }

  PositionRange events_of(std::int64_t user) const {
    const auto u = static_cast<std::size_t>(user);
    return {first_ + user_offsets()[u], first_ + user_offsets()[u + 1]};
  }
  // Its events of the user with this id; empty if there are none.
  PositionRange events_of_id(std::int64_t id) const;
  // Index u of the user of the event at `position`, which is one of this segment.
  std::int64_t user_at(std::int64_t position) const;

 private:
  Path folder_;
  std::int64_t first_;
  NpyColumn<std::int64_t> user_ids_, user_offsets_;
};

}  // namespace hstu
