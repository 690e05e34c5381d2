// The distinct values of a stream of ids, and the place of each in their ascending order.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/random.h"

namespace hstu {

// An open-addressing hash table: a batch repeats its few distinct items millions of times, so the table stays
// in cache where a sort of the stream would not.
class DistinctIds {
 public:
  DistinctIds() : slots_(1024) {}

  static constexpr std::int32_t kAbsent = -1;

  // Number of `id` in the order of first appearance, from 0.
  std::int32_t insert(std::int64_t id) {
    Slot& slot = slots_[find_slot(id)];
    if (slot.number != kAbsent) return slot.number;
    const auto number = static_cast<std::int32_t>(ids_.size());
    slot = {id, number};
    ids_.push_back(id);
    if (ids_.size() * 2 > slots_.size()) grow();
    return number;
  }
  // The number insert() gave to `id`, or kAbsent.
  std::int32_t find(std::int64_t id) const { return slots_[find_slot(id)].number; }
  std::size_t size() const { return ids_.size(); }

  struct Sorted {
    std::vector<std::int64_t> ids;    // ascending
    std::vector<std::int32_t> place;  // [number of first appearance] index into ids
  };
  Sorted sorted() const;

 private:
  struct Slot {
    std::int64_t id = 0;
    std::int32_t number = kAbsent;
  };
  // Where `id` stands or would be put.
  std::size_t find_slot(std::int64_t id) const {
    std::size_t at = mix64(static_cast<std::uint64_t>(id)) & (slots_.size() - 1);
    while (slots_[at].number != kAbsent && slots_[at].id != id) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow();

  std::vector<Slot> slots_;        // a power of two, never more than half full
  std::vector<std::int64_t> ids_;  // in the order of first appearance
};

}  // namespace hstu
