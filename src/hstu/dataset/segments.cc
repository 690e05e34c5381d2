#include "hstu/dataset/segments.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/mapped_space.h"
#include "hstu/dataset/open_column.h"

namespace hstu {
namespace {

// Room for the header of a file, whose elements begin at a multiple of the alignment.
constexpr std::int64_t kHeaderRoom = 4096;
constexpr auto kAlignment = static_cast<std::int64_t>(MappedSpace::kAlignment);

std::optional<std::int64_t> larger(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::max(a, b) : (a ? a : b);
}
std::optional<std::int64_t> smaller(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(a, b) : (a ? a : b);
}

// Columns of which the last segment has all elements; they continue no column of the segments before it.
bool is_whole(const std::string& file) {
  return file.starts_with("names_context_") || file.starts_with("names_attribute_");
}

// What is known of the values of a column in two segments.
void join(ColumnInfo& column, const ColumnInfo& later, bool whole) {
  const bool extremes = (column.count == 0 || column.max) && (later.count == 0 || later.max);
  column = {.type = later.type,
            .count = whole ? later.count : column.count + later.count,
            .bytes = column.bytes + later.bytes,
            .checksum = {},
            .min = extremes ? smaller(column.min, later.min) : std::nullopt,
            .max = extremes ? larger(column.max, later.max) : std::nullopt};
}

}  // namespace

Path segment_folder(const Path& folder, std::int64_t number) {
  return folder / kSegmentsFolder / fmt::format("{:04}", number);
}

std::vector<SegmentFolder> read_segments(const Path& dataset) {
  std::vector<SegmentFolder> segments{{dataset, read_own_manifest(dataset)}};
  check(!segments.front().manifest.extends,
        "{} is a segment of a dataset: name the folder that has the folder {}", dataset.string(),
        kSegmentsFolder);
  for (std::int64_t number = 1;; ++number) {
    const Path folder = segment_folder(dataset, number);
    if (!std::filesystem::exists(folder / kManifestFile)) return segments;
    segments.push_back({folder, read_own_manifest(folder)});
    const auto& extends = segments.back().manifest.extends;
    const std::string& before = segments[segments.size() - 2].manifest.id;
    check(extends && extends->dataset == before,
          "{}: extends: expected the dataset {}, found {}: the folder belongs to another dataset; remove it "
          "and append its log again",
          (folder / kManifestFile).string(), before, extends ? extends->dataset : "none");
  }
}

std::vector<SegmentFolder> read_segments(const Path& dataset, const std::string& id) {
  std::vector<SegmentFolder> segments = read_segments(dataset);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (segments[s].manifest.id != id) continue;
    segments.resize(s + 1);
    break;
  }
  return segments;
}

Manifest manifest_of(const std::vector<SegmentFolder>& segments) {
  Manifest all = segments.front().manifest;
  for (std::size_t s = 1; s < segments.size(); ++s) {
    const Manifest& later = segments[s].manifest;
    all.extended.push_back(all.id);
    all.ties.reset();
    all.id = later.id;
    all.counts = later.extends->counts;
    all.rules = later.rules;
    all.time = {std::min(all.time.min, later.time.min), std::max(all.time.max, later.time.max)};
    for (const auto& [file, column] : later.columns) {
      const auto [entry, added] = all.columns.try_emplace(file, column);
      if (!added) join(entry->second, column, is_whole(file));
    }
    for (const auto& [of, collisions] : later.hashed) {
      auto& sum = all.hashed[of];
      sum = sum && collisions ? std::optional(*sum + *collisions) : std::nullopt;
    }
  }
  return all;
}

std::vector<std::int64_t> segment_positions(const std::vector<SegmentFolder>& segments) {
  std::vector<std::int64_t> positions;
  std::int64_t end = 0;
  for (const SegmentFolder& segment : segments) {
    if (!positions.empty()) end = (end + kHeaderRoom + kAlignment - 1) / kAlignment * kAlignment;
    positions.push_back(end);
    end += segment.manifest.counts.events;
  }
  positions.push_back(end);
  return positions;
}

Segment::Segment(const SegmentFolder& segment, std::int64_t first)
    : folder_(segment.folder),
      first_(first),
      user_ids_(open_column<std::int64_t>(segment.folder, segment.manifest, kUserIdsFile)),
      user_offsets_(open_column<std::int64_t>(segment.folder, segment.manifest, kUserOffsetsFile)) {
  const auto offsets = user_offsets();
  const std::int64_t events = segment.manifest.counts.events;
  check(offsets.front() == 0 && offsets.back() == events && std::is_sorted(offsets.begin(), offsets.end()),
        "{}: expected ascending offsets from 0 to {}", (folder_ / kUserOffsetsFile).string(), events);
  check(std::adjacent_find(user_ids().begin(), user_ids().end(), std::greater_equal<>()) == user_ids().end(),
        "{}: expected strictly ascending user ids", (folder_ / kUserIdsFile).string());
}

PositionRange Segment::events_of_id(std::int64_t id) const {
  const auto ids = user_ids();
  const auto found = std::lower_bound(ids.begin(), ids.end(), id);
  return found == ids.end() || *found != id ? PositionRange{} : events_of(found - ids.begin());
}

std::int64_t Segment::user_at(std::int64_t position) const {
  const auto offsets = user_offsets();
  return std::upper_bound(offsets.begin(), offsets.end(), position - first_) - offsets.begin() - 1;
}

}  // namespace hstu
