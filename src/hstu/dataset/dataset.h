// A prepared dataset, mapped from its folder: events user-major, chronological within a user. Alphabet: N
// events, U users. A position is the index of an event in [0, N).
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
#include "hstu/dataset/pool_counts.h"

namespace hstu {

// An attribute of items.
class AttributeColumn {
 public:
  // `values` has the element of an item at the position that the item has in `items`, which ascend; without
  // `items`, at the item's id. The items must outlive the column.
  AttributeColumn(MappedColumn values, std::optional<std::span<const std::int64_t>> items)
      : values_(std::move(values)), items_(items) {}

  const MappedColumn& values() const { return values_; }
  // 0 (unmapped) for items without an element.
  std::int64_t of(std::int64_t item) const {
    if (!items_) return item >= 0 && item < values_.size() ? values_[item] : 0;
    const auto found = std::lower_bound(items_->begin(), items_->end(), item);
    return found != items_->end() && *found == item ? values_[found - items_->begin()] : 0;
  }

 private:
  MappedColumn values_;
  std::optional<std::span<const std::int64_t>> items_;
};

class Dataset {
 public:
  // Maps every column and compares its type, length and size with the manifest; reads data of users, but no
  // events. UsageError if the folder is not a dataset, Error naming the file that contradicts the manifest.
  explicit Dataset(const Path& folder);

  const Path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  std::int64_t events() const { return manifest_.counts.events; }
  std::int64_t users() const { return manifest_.counts.users; }

  std::span<const std::int64_t> user_ids() const { return user_ids_.values(); }          // (U) ascending
  std::span<const std::int64_t> user_offsets() const { return user_offsets_.values(); }  // (U + 1)
  const MappedColumn& item() const { return item_; }                                     // (N) original ids
  const MappedColumn& time() const { return time_; }                                     // (N) seconds
  std::span<const std::uint8_t> action() const { return action_.values(); }  // (N) action bits, kRankableBit
  PoolCounts pool_counts() const;

  // Columns by name; UsageError with the nearest known name if the dataset has no such column.
  const MappedColumn& context(std::string_view name) const;  // (N)
  const AttributeColumn& attribute(std::string_view name) const;

  // `position`, from a file, as an index of the columns. Throws Error, with what to do, unless it is in [0,
  // N).
  std::int64_t checked(std::int64_t position) const {
    if (position < 0 || position >= events()) refuse_position(position);
    return position;
  }
  // Positions [begin, end) of the events of the user with this original id before `time`; empty for a user
  // without any.
  struct Events {
    std::int64_t begin = 0, end = 0;
  };
  Events events_before(std::int64_t user_id, std::int64_t time) const;
  // Index u of the user of the event at `position`: a binary search. Throws Error unless it is in [0, N).
  std::int64_t user_at(std::int64_t position) const;

 private:
  [[noreturn]] void refuse_position(std::int64_t position) const;

  Path folder_;
  Manifest manifest_;
  NpyColumn<std::int64_t> user_ids_, user_offsets_;
  MappedColumn item_, time_;
  NpyColumn<std::uint8_t> action_;
  MappedFile pool_counts_;
  std::optional<NpyColumn<std::int64_t>> item_ids_;  // of attributes, if they are not indexed by item id
  std::vector<MappedColumn> context_;                // in the order of the manifest
  std::vector<AttributeColumn> attributes_;          // in the order of the manifest
};

}  // namespace hstu
