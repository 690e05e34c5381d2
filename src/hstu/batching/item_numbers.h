// Numbers of the items of a batch, with one lookup for each event of a user.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/distinct_ids.h"
#include "hstu/dataset/mapped_column.h"

namespace hstu {

// The histories of a user's consecutive anchors share most of their events, and anchors mostly come user by
// user: the numbers that one sample looked up are cached by position for the next.
class ItemNumbers {
 public:
  // Removes the items; keeps the memory.
  void clear();

  // numbers[i] = the number of the item at positions[i]; positions ascend and belong to the user whose events
  // begin at user_start.
  void number(const MappedColumn& item, std::int64_t user_start, std::span<const std::int64_t> positions,
              std::int32_t* numbers);
  // The same for a single item, of any user.
  std::int32_t number(std::int64_t item) { return distinct_.insert(item); }

  DistinctIds& distinct() { return distinct_; }

 private:
  DistinctIds distinct_;
  std::int64_t user_start_ = -1;
  std::int64_t base_ = 0;             // position of known_[0]
  std::vector<std::int32_t> known_;   // [position - base_] number, or kAbsent
  std::vector<std::int64_t> ids_;     // scratch: of events not known yet
  std::vector<std::int64_t> events_;  // their positions
  std::vector<std::int32_t> found_;   // their numbers
};

}  // namespace hstu
