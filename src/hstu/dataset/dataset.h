// A prepared dataset, mapped from its folder: events user-major, chronological within a user. Alphabet: N
// events, U users. A position is the index of an event in [0, N).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/npy.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/mapped_column.h"
#include "hstu/dataset/pool_counts.h"

namespace hstu {

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
  const MappedColumn& context(std::string_view name) const;    // (N)
  const MappedColumn& attribute(std::string_view name) const;  // indexed by item id; see attribute_of

  // `position`, from a file, as an index of the columns. Throws Error, with what to do, unless it is in [0,
  // N).
  std::int64_t checked(std::int64_t position) const {
    if (position < 0 || position >= events()) refuse_position(position);
    return position;
  }
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
  std::vector<MappedColumn> context_, attributes_;  // in the order of the manifest
};

// The attribute of an item; 0 (unmapped) for items beyond the end of the attribute's column.
inline std::int64_t attribute_of(const MappedColumn& attribute, std::int64_t item) {
  return item >= 0 && item < attribute.size() ? attribute[item] : 0;
}

}  // namespace hstu
