// WaitingIds: how often each id without a row has occurred. A hash table of 12 bytes an entry, between 64 %
// and 80 % of which are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hstu {

class WaitingIds {
 public:
  std::int64_t size() const { return size_; }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(ids_.capacity() * sizeof(std::int64_t) +
                                     counts_.capacity() * sizeof(std::uint32_t));
  }

  // Adds `count` >= 1 occurrences. Returns all occurrences of the id; when they reach `enough` < 2^32, the id
  // is removed.
  std::int64_t add(std::int64_t id, std::int64_t count, std::int64_t enough);
  // The occurrences of the id; 0: none.
  std::int64_t count(std::int64_t id) const;

  // For checkpoints: every id by ascending id, and their counts.
  struct List {
    std::vector<std::int64_t> ids, counts;  // (n)
  };
  List by_id() const;

 private:
  // The entry of `id`, or the empty one (of count 0) for it.
  std::size_t probe(std::int64_t id) const;
  std::size_t home(std::int64_t id) const;
  std::size_t next(std::size_t at) const { return at + 1 == ids_.size() ? 0 : at + 1; }
  void grow();
  void erase(std::size_t hole);

  std::vector<std::int64_t> ids_;
  std::vector<std::uint32_t> counts_;  // 0: an empty entry
  std::int64_t size_ = 0;
};

}  // namespace hstu
