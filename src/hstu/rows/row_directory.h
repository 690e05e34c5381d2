// RowDirectory: which rows a table has, and at which slot each of them is. It is in host memory, wherever the
// rows themselves are. A row that is removed leaves its slot to the next new row.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "hstu/base/random.h"
#include "hstu/rows/row_shape.h"
#include "hstu/rows/segments.h"
#include "hstu/rows/slot_index.h"

namespace hstu {

// What a row has beside its values and its optimizer's state. `score` and `seen` belong to row_limiter.h.
struct HostRow {
  static constexpr std::int64_t kNoId = -1;  // a free slot
  static constexpr std::uint32_t kNew = std::numeric_limits<std::uint32_t>::max();

  std::int64_t id = kNoId;
  std::int64_t score = 0;
  std::uint32_t seen = kNew;  // the last step that trained the row; kNew: its first one has not ended
  std::uint32_t updated = 0;  // number of the last update, creation or visit of the row
};

// Every result is the same for any number of threads and any order of first touches.
class RowDirectory {
 public:
  using Place = RowPlace;

  // Ids are 0 .. ids - 1.
  explicit RowDirectory(std::int64_t ids) : ids_(ids), tags_are_ids_(ids <= std::int64_t{1} << 32) {}

  std::int64_t rows() const { return slots_ - static_cast<std::int64_t>(free_.size()); }
  std::int64_t bytes() const;
  // At most, for `rows` rows.
  static constexpr std::int64_t most_bytes(std::int64_t rows) {
    return rows * std::int64_t{sizeof(HostRow)} + SlotIndex::most_bytes(rows);
  }

  // The slot of `id`, kAbsentRow or kNullRow.
  std::int64_t find(std::int64_t id) const {
    if (id < 0 || id >= ids_) return kNullRow;
    return index_.find(tag_of(id),
                       [&](std::uint32_t slot) { return tags_are_ids_ || heads_[slot].id == id; });
  }
  // slots (n) of `ids` (n), by the calling thread or by all.
  void find_some(std::span<const std::int64_t> ids, std::int64_t* slots) const;
  void find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const;
  // The same; missing rows are added. Gives the slots of those, whose contents are the caller's to begin.
  std::vector<std::int64_t> create_slots(std::span<const std::int64_t> ids, std::int64_t* slots);
  // Removes existing rows. Their slots may not be in use.
  void remove(std::span<const Place> rows);

  // Slots are 0 .. slots() - 1; a free one has kNoId.
  std::int64_t slots() const { return slots_; }
  // Whether a row of the slot has not been removed. Reads the row only if any was.
  bool lives(std::int64_t slot) const { return !removes_ || heads_[slot].id != HostRow::kNoId; }
  HostRow& row(std::int64_t slot) { return heads_[slot]; }
  const HostRow& row(std::int64_t slot) const { return heads_[slot]; }
  // The slots of the rows that create_slots() added since the last call, which begins the record of them.
  std::vector<std::int64_t> take_created();
  std::vector<Place> places_by_id() const { return changed_by_id(-1); }

  // A number for an update; marks a row as updated by it. False: that update had the row before. Threads may
  // mark at the same time.
  std::uint32_t next_update() { return ++updates_; }
  bool mark_updated(std::int64_t slot, std::uint32_t update) {
    return std::atomic_ref(heads_[slot].updated).exchange(update, std::memory_order_relaxed) != update;
  }
  // RowsById::begin_changes() and changed_by_id(); touch() makes a row one of those that changed.
  std::int64_t begin_changes() {
    follows_changes_ = true;
    return updates_++;
  }
  bool follows_changes() const { return follows_changes_; }
  std::vector<Place> changed_by_id(std::int64_t since) const;
  void touch(HostRow& row) const { row.updated = updates_; }

 private:
  // 32 bits of a hash; ids of 32 bits have a bijection, so that the index alone tells them apart.
  std::uint32_t tag_of(std::int64_t id) const {
    return tags_are_ids_ ? mix32(static_cast<std::uint32_t>(id))
                         : static_cast<std::uint32_t>(mix64(static_cast<std::uint64_t>(id)) >> 32);
  }

  std::int64_t ids_;
  bool tags_are_ids_, removes_ = false;
  SlotIndex index_;
  Segments<HostRow> heads_;
  std::int64_t slots_ = 0;
  std::vector<std::uint32_t> free_;  // slots without a row
  std::uint32_t updates_ = 0;
  bool records_created_ = false, follows_changes_ = false;
  std::vector<std::int64_t> created_;
};

}  // namespace hstu
