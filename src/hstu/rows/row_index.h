// RowIndex: a hash table from 64-bit ids to slots 0, 1, 2, ... in order of insertion. Open addressing with
// linear probing over one flat array: a lookup usually costs one cache line, and a GPU table uses the same
// layout. Every id is a valid key; ids are never removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hstu/base/random.h"

namespace hstu {

class RowIndex {
 public:
  static constexpr std::int64_t kAbsent = -1;

  std::int64_t size() const { return size_; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(entries_.capacity() * sizeof(Entry)); }

  // The slot of `id`, or kAbsent. Thread-safe if no thread inserts at the same time.
  std::int64_t find(std::int64_t id) const { return entries_.empty() ? kAbsent : entries_[probe(id)].slot; }

  // The slot of `id`; an unknown id gets the next slot, size().
  std::int64_t find_or_insert(std::int64_t id) {
    if (2 * size_ >= static_cast<std::int64_t>(entries_.size())) grow();
    Entry& entry = entries_[probe(id)];
    if (entry.slot == kAbsent) entry = {id, size_++};
    return entry.slot;
  }

  // Prefetches the cache line of `id` for a later find().
  void prefetch(std::int64_t id) const {
    if (!entries_.empty()) __builtin_prefetch(&entries_[home(id)]);
  }

  // Calls body(id, slot) for every id, in unspecified order.
  template <typename Body>
  void for_each(const Body& body) const {
    for (const Entry& entry : entries_)
      if (entry.slot != kAbsent) body(entry.id, entry.slot);
  }

 private:
  struct Entry {
    std::int64_t id = 0;
    std::int64_t slot = kAbsent;
  };

  std::size_t home(std::int64_t id) const {
    return static_cast<std::size_t>(mix64(static_cast<std::uint64_t>(id))) & (entries_.size() - 1);
  }

  // The entry of `id`, or the empty entry for it. Terminates, because at most half of the entries are used.
  std::size_t probe(std::int64_t id) const {
    std::size_t place = home(id);
    while (entries_[place].slot != kAbsent && entries_[place].id != id)
      place = (place + 1) & (entries_.size() - 1);
    return place;
  }

  void grow() {
    std::vector<Entry> old(entries_.empty() ? 64 : 2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.slot != kAbsent) entries_[probe(entry.id)] = entry;
  }

  std::vector<Entry> entries_;  // the number of entries is a power of two
  std::int64_t size_ = 0;
};

}  // namespace hstu
