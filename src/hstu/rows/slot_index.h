// SlotIndex: a hash table from ids to slots that stores no ids: 8 bytes an entry, the slot and a tag, 32 bits
// of the id's hash. Open addressing with linear probing. A tag gives an entry's first place in an array of
// any size, so growth and removal read the array alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hstu/base/error.h"
#include "hstu/base/huge_pages.h"

namespace hstu {

// Of loops over ids: ids a block of work of one thread has, and ids between a prefetch and its use.
inline constexpr std::int64_t kLookupGrain = 512, kPrefetchDistance = 8;

// `has_id(slot)` says whether the row at the slot, which has the tag, has the id.
class SlotIndex {
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
  struct Entry {
    std::uint32_t tag = 0;
    std::uint32_t slot = kEmpty;
  };
  static constexpr std::int64_t kLeast = 64;

 public:
  static constexpr std::int64_t kAbsent = -1;

  std::int64_t bytes() const { return static_cast<std::int64_t>(entries_.capacity() * sizeof(Entry)); }

  // For `entries` ids.
  static constexpr std::int64_t most_bytes(std::int64_t entries) {
    return std::max<std::int64_t>(kLeast, entries * 100 / 64 + 1) * std::int64_t{sizeof(Entry)};
  }

  // The slot of an id, or kAbsent. Thread-safe if no thread changes the index at the same time.
  template <typename HasId>
  std::int64_t find(std::uint32_t tag, const HasId& has_id) const {
    if (entries_.empty()) return kAbsent;
    for (std::size_t at = home(tag);; at = next(at)) {
      const Entry& entry = entries_[at];
      if (entry.slot == kEmpty) return kAbsent;
      if (entry.tag == tag && has_id(entry.slot)) return entry.slot;
    }
  }

  // The first slot with the tag, almost always that of the id, or kAbsent: for prefetching.
  std::int64_t likely(std::uint32_t tag) const {
    return find(tag, [](std::uint32_t) { return true; });
  }

  // Prefetches the cache line of a tag for a later find().
  void prefetch(std::uint32_t tag) const {
    if (!entries_.empty()) __builtin_prefetch(&entries_[home(tag)]);
  }

  // Adds an id that is absent.
  void insert(std::uint32_t tag, std::int64_t slot) {
    require(slot >= 0 && slot < kEmpty, "expected a slot below 2^32 - 1, found {}", slot);
    if (5 * (size_ + 1) > 4 * entries_.size()) grow();
    place({tag, static_cast<std::uint32_t>(slot)});
    ++size_;
  }

  // Removes the entry of a slot, and moves the entries behind it closer to their first places.
  void erase(std::uint32_t tag, std::int64_t slot) {
    std::size_t hole = home(tag);
    while (entries_[hole].slot != static_cast<std::uint32_t>(slot)) {
      require(entries_[hole].slot != kEmpty, "expected slot {} in the index", slot);
      hole = next(hole);
    }
    for (std::size_t at = next(hole); entries_[at].slot != kEmpty; at = next(at)) {
      if (distance(home(entries_[at].tag), at) < distance(hole, at)) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = {};
    --size_;
  }

 private:
  std::size_t home(std::uint32_t tag) const { return (std::uint64_t{tag} * entries_.size()) >> 32; }
  std::size_t next(std::size_t at) const { return at + 1 == entries_.size() ? 0 : at + 1; }
  std::size_t distance(std::size_t from, std::size_t to) const {
    return to >= from ? to - from : to + entries_.size() - from;
  }

  void place(Entry entry) {
    std::size_t at = home(entry.tag);
    while (entries_[at].slot != kEmpty) at = next(at);
    entries_[at] = entry;
  }

  // By a quarter: between 64 % and 80 % of the entries are used.
  void grow() {
    HugePageVector<Entry> old(entries_.empty() ? kLeast : entries_.size() + entries_.size() / 4);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.slot != kEmpty) place(entry);
  }

  HugePageVector<Entry> entries_;  // fewer than 2^32
  std::size_t size_ = 0;
};

}  // namespace hstu
