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

  // Number of `id` in the order of first appearance, from 0.
  std::int32_t insert(std::int64_t id) {
    std::size_t at = mix64(static_cast<std::uint64_t>(id)) & (slots_.size() - 1);
    while (slots_[at].number != kFree) {
      if (slots_[at].id == id) return slots_[at].number;
      at = (at + 1) & (slots_.size() - 1);
    }
    const auto number = static_cast<std::int32_t>(ids_.size());
    slots_[at] = {id, number};
    ids_.push_back(id);
    if (ids_.size() * 2 > slots_.size()) grow();
    return number;
  }

  struct Sorted {
    std::vector<std::int64_t> ids;    // ascending
    std::vector<std::int32_t> place;  // [number of first appearance] index into ids
  };
  Sorted sorted() const;

 private:
  static constexpr std::int32_t kFree = -1;
  struct Slot {
    std::int64_t id = 0;
    std::int32_t number = kFree;
  };
  void grow();

  std::vector<Slot> slots_;        // a power of two
  std::vector<std::int64_t> ids_;  // in the order of first appearance
};

}  // namespace hstu
