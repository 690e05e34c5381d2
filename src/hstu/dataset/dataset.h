// A prepared dataset, mapped from its folders. Every segment (segments.h) is user-major, chronological within
// a user. A position identifies an event: it is the index of the event in columns that continue over all
// segments, later ones behind earlier ones, with positions without events between them. Alphabet: N events, U
// users, P the end of the positions: N if there is one segment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/npy.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/mapped_column.h"
#include "hstu/dataset/open_column.h"
#include "hstu/dataset/pool_counts.h"
#include "hstu/dataset/segments.h"
#include "hstu/dataset/user_events.h"
#include "hstu/dataset/user_index.h"
#include "hstu/dataset/weight_column.h"

namespace hstu {

// An attribute of items.
class AttributeColumn {
 public:
  // What a segment says of the attribute: `values` has the element of an item at the position that the item
  // has in `items`, which ascend; without `items`, at the item's id. The items must outlive the column.
  struct Part {
    MappedColumn values;
    std::optional<std::span<const std::int64_t>> items;
    std::int64_t of(std::int64_t item) const {
      if (!items) return item >= 0 && item < values.size() ? values[item] : 0;
      const auto found = std::lower_bound(items->begin(), items->end(), item);
      return found != items->end() && *found == item ? values[found - items->begin()] : 0;
    }
  };
  explicit AttributeColumn(std::vector<Part> parts) : parts_(std::move(parts)) {}

  // Of each segment, in their order.
  const std::vector<Part>& parts() const { return parts_; }
  // Of the last segment that has a value of the item. 0 (unmapped) for items without one.
  std::int64_t of(std::int64_t item) const {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part)
      if (const std::int64_t value = part->of(item); value != 0) return value;
    return 0;
  }

 private:
  std::vector<Part> parts_;
};

// Events in memory. Spans of one length; of `context` one for each context column of a manifest.
struct EventColumns {
  std::span<const std::int64_t> item, time;
  std::span<const std::uint8_t> action;
  std::vector<std::span<const std::int64_t>> context;
};

class Dataset {
 public:
  // Maps every column and compares its type, length and size with the manifest; reads data of users, but no
  // events but the times of users that are in several segments. UsageError if the folder is not a dataset,
  // Error naming the file that contradicts the manifest.
  explicit Dataset(const Path& folder);
  // Of segments that need not be in their places yet.
  Dataset(const Path& folder, std::vector<SegmentFolder> segments);
  // Events in memory under the actions, columns and item attributes of `schema`, which must outlive it. It
  // has no users and no segments: who uses it knows the positions of each user's events.
  static Dataset in_memory(const Dataset& schema) { return {schema, InMemory()}; }
  // Replaces the events of a dataset in memory; those given must outlive their use.
  void show(const EventColumns& events);
  Dataset(Dataset&&) = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const Path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }  // of all segments
  std::int64_t events() const { return manifest_.counts.events; }
  std::int64_t users() const { return users_.users(); }

  const std::vector<SegmentFolder>& folders() const { return folders_; }
  const std::vector<Segment>& segments() const { return segments_; }
  std::int64_t end() const { return segments_.empty() ? item_.size() : segments_.back().end(); }  // P

  std::span<const std::int64_t> user_ids() const { return users_.ids(); }  // (U) ascending
  const MappedColumn& item() const { return item_; }                       // (P) original ids
  const MappedColumn& time() const { return time_; }                       // (P) seconds
  std::span<const std::uint8_t> action() const {                           // (P) action bits, kRankableBit
    return {action_, static_cast<std::size_t>(end())};
  }
  bool has_weights() const { return weight_.has_value(); }
  // Of the event at `position`: the factor of its loss. The dataset has weights.
  float weight(std::int64_t position) const { return weight_of_bits((*weight_)[position]); }
  std::vector<PoolCounts> pool_counts() const;  // of each segment; of events in memory none

  // Columns by name; UsageError with the nearest known name if the dataset has no such column.
  const MappedColumn& context(std::string_view name) const;  // (P)
  const AttributeColumn& attribute(std::string_view name) const;

  // `position`, from a file, as an index of the columns. Throws Error, with what to do, unless it is in [0,
  // P).
  std::int64_t checked(std::int64_t position) const {
    if (position < 0 || position >= end()) refuse_position(position);
    return position;
  }
  // Events of user u: all; those before the event at `position`, which is one of them.
  UserEvents events_of(std::int64_t user) const { return users_.events_of(user); }
  UserEvents events_before(std::int64_t user, std::int64_t position) const;
  // Events of the user with this original id before `time`; empty for a user without any.
  UserEvents events_before_time(std::int64_t user_id, std::int64_t time) const;
  // Index u of the user of the event at `position`: a binary search. Throws Error unless it is in [0, P).
  std::int64_t user_at(std::int64_t position) const { return users_.user_at(checked(position)); }
  // The end of the events that the user of `position` has in the same segment.
  std::int64_t end_of_user_in_segment(std::int64_t position) const;

 private:
  struct InMemory {};
  Dataset(const Dataset& schema, InMemory);
  [[noreturn]] void refuse_position(std::int64_t position) const;
  using OpenColumn = MappedColumn (*)(const Path&, const Manifest&, const std::string&);
  MappedColumn open(const std::string& file, OpenColumn opened = open_integers) const;

  Path folder_;
  std::vector<SegmentFolder> folders_;
  Manifest manifest_;
  std::vector<Segment> segments_;
  MappedColumn item_, time_, action_column_;
  const std::uint8_t* action_;
  UserIndex users_;
  std::vector<MappedFile> pool_counts_;            // of each segment
  std::vector<NpyColumn<std::int64_t>> item_ids_;  // of attributes, if they are not indexed by item id
  std::optional<MappedColumn> weight_;             // bits
  std::vector<MappedColumn> context_;              // in the order of the manifest
  std::vector<AttributeColumn> attributes_;        // in the order of the manifest
};

}  // namespace hstu
