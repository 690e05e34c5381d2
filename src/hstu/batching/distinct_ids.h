// The distinct values of a stream of ids, and the rank of each in ascending order.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hstu/base/random.h"

namespace hstu {

// An open-addressing hash table: a batch repeats its few distinct items millions of times, so the table fits
// in cache, unlike a sort of the stream.
class DistinctIds {
 public:
  DistinctIds() : slots_(kLeast) {}

  static constexpr std::int32_t kAbsent = -1;

  // Number of `id` in the order of first appearance, from 0.
  std::int32_t insert(std::int64_t id) {
    reserve(1);
    return insert_at(home_of(id), id);
  }
  // numbers[i] = insert(ids[i]), with slots prefetched before they are probed.
  void insert(std::span<const std::int64_t> ids, std::int32_t* numbers);
  // The number that insert() returned for `id`, or kAbsent.
  std::int32_t find(std::int64_t id) const { return slots_[find_slot(home_of(id), id)].number; }
  std::size_t size() const { return ids_.size(); }
  // (size()), valid until the next insertion or clear().
  std::span<const std::int64_t> in_order_of_appearance() const { return ids_; }
  // Removes all ids; keeps the memory, but uses less of it if there were far fewer than it is for.
  void clear();

  // The ids in ascending order with their numbers; valid until the next insertion or clear().
  struct Numbered {
    std::int64_t id;
    std::int32_t number;
  };
  std::span<const Numbered> sorted();

 private:
  struct Slot {
    std::int64_t id = 0;
    std::int32_t number = kAbsent;
  };
  std::size_t home_of(std::int64_t id) const {
    return mix64(static_cast<std::uint64_t>(id)) & (slots_.size() - 1);
  }
  // The slot that holds `id` or would receive it.
  std::size_t find_slot(std::size_t at, std::int64_t id) const {
    while (slots_[at].number != kAbsent && slots_[at].id != id) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  std::int32_t insert_at(std::size_t home, std::int64_t id) {
    Slot& slot = slots_[find_slot(home, id)];
    if (slot.number != kAbsent) return slot.number;
    slot = {id, static_cast<std::int32_t>(ids_.size())};
    ids_.push_back(id);
    return slot.number;
  }
  void reserve(std::size_t more) {
    while ((ids_.size() + more) * 2 > slots_.size()) grow();
  }
  void grow();
  void sort_by_digits();

  static constexpr std::size_t kLeast = 1024;
  std::vector<Slot> slots_;        // a power of two, never more than half full
  std::vector<std::int64_t> ids_;  // in the order of first appearance
  std::vector<Numbered> sorted_, other_;
};

}  // namespace hstu
