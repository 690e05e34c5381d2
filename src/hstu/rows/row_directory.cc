#include "hstu/rows/row_directory.h"

#include <algorithm>
#include <utility>

#include "hstu/base/threads.h"

namespace hstu {

std::int64_t RowDirectory::bytes() const {
  return heads_.bytes() + index_.bytes() +
         static_cast<std::int64_t>(free_.capacity() * sizeof(std::uint32_t));
}

void RowDirectory::find_some(std::span<const std::int64_t> ids, std::int64_t* slots) const {
  static_assert(SlotIndex::kAbsent == kAbsentRow);
  const auto n = std::ssize(ids);
  for (std::int64_t i = 0; i < n; ++i) {
    if (i + 2 * kPrefetchDistance < n) index_.prefetch(tag_of(ids[i + 2 * kPrefetchDistance]));
    if (!tags_are_ids_ && i + kPrefetchDistance < n) {
      const std::int64_t likely = index_.likely(tag_of(ids[i + kPrefetchDistance]));
      if (likely >= 0) __builtin_prefetch(&heads_[likely]);
    }
    slots[i] = find(ids[i]);
  }
}

void RowDirectory::find_slots(std::span<const std::int64_t> ids, std::int64_t* slots) const {
  parallel_blocks(std::ssize(ids), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
    find_some(ids.subspan(begin, end - begin), slots + begin);
  });
}

std::vector<std::int64_t> RowDirectory::create_slots(std::span<const std::int64_t> ids, std::int64_t* slots) {
  find_slots(ids, slots);
  // Insertion is serial, in the order of the ids, so that slots do not depend on the number of threads.
  std::vector<std::int64_t> created;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (slots[i] != kAbsentRow) continue;
    if (!created.empty() && (slots[i] = find(ids[i])) != kAbsentRow) continue;  // it occurs twice
    if (free_.empty()) {
      slots[i] = slots_++;
      heads_.grow(slots_);
    } else {
      slots[i] = free_.back();
      free_.pop_back();
    }
    index_.insert(tag_of(ids[i]), slots[i]);
    heads_[slots[i]] = {.id = ids[i], .updated = updates_};
    created.push_back(slots[i]);
  }
  if (records_created_) created_.insert(created_.end(), created.begin(), created.end());
  return created;
}

void RowDirectory::remove(std::span<const Place> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + kPrefetchDistance < rows.size()) {
      index_.prefetch(tag_of(rows[i + kPrefetchDistance].id));
      __builtin_prefetch(&heads_[rows[i + kPrefetchDistance].slot], 1);
    }
    index_.erase(tag_of(rows[i].id), rows[i].slot);
    heads_[rows[i].slot] = {};
    free_.push_back(static_cast<std::uint32_t>(rows[i].slot));
  }
  removes_ |= !rows.empty();
}

std::vector<std::int64_t> RowDirectory::take_created() {
  records_created_ = true;
  return std::exchange(created_, {});
}

std::vector<RowDirectory::Place> RowDirectory::changed_by_id(std::int64_t since) const {
  std::vector<Place> places;
  if (since < 0) places.reserve(static_cast<std::size_t>(rows()));
  for (std::int64_t slot = 0; slot < slots_; ++slot)
    if (heads_[slot].id != HostRow::kNoId && std::int64_t{heads_[slot].updated} > since)
      places.push_back({heads_[slot].id, slot});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.id < b.id; });
  return places;
}

}  // namespace hstu
