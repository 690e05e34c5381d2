// A count for each distinct item of a log.
#pragma once

#include <cstdint>
#include <vector>

namespace hstu {

// Open addressing: 23 to 46 bytes for each item, and once more half of that while the table grows.
class ItemTable {
 public:
  struct Entry {
    std::int64_t id = -1;       // -1: no item
    std::uint32_t count = 0;    // saturates
    std::uint32_t in_core = 1;  // the item stays
  };

  // UsageError if the table would take more than `memory` bytes.
  explicit ItemTable(std::int64_t memory);
  // The entry of an item, which is added if it is new. Valid until the next call.
  Entry& at(std::int64_t id);
  std::vector<Entry>& entries() { return entries_; }  // those of no item too
  std::int64_t size() const { return size_; }

 private:
  std::size_t place_of(std::int64_t id) const;
  void grow();

  std::int64_t memory_, size_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace hstu
