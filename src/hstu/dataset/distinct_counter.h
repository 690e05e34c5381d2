// Counts different ids within a bound of memory, exactly, however many there are and however they are spread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/integer_column.h"

namespace hstu {

// Ids from dense ranges take a bit each: bits lie in pages that come to be when an id falls into them. When
// pages have taken half of `memory` (sparse ids, such as hashes, need one each), further ids are collected,
// sorted and spilled into `folder`, and told apart by merging at the end.
class DistinctCounter {
 public:
  // The folder is made when it is needed and removed by the destructor; nobody else may use it.
  DistinctCounter(Path folder, std::int64_t memory);
  ~DistinctCounter();
  DistinctCounter(const DistinctCounter&) = delete;
  DistinctCounter& operator=(const DistinctCounter&) = delete;

  void add(const IntegerColumn& ids);
  // Number of different ids so far. Call it once, at the end.
  std::int64_t count();

 private:
  static constexpr int kPageBits = 15;  // 4 KiB
  using Page = std::array<std::uint64_t, (std::size_t{1} << kPageBits) / 64>;

  void add_id(std::int64_t id);
  Page* find_page(std::int64_t number);
  void spill();
  std::int64_t count_spilled();

  Path folder_;
  std::size_t most_pages_, most_loose_;
  std::unordered_map<std::int64_t, std::unique_ptr<Page>> pages_;
  std::int64_t last_number_ = -1;  // of the page that was used last
  Page* last_page_ = nullptr;
  std::vector<std::int64_t> loose_;  // ids without a page, not sorted yet
  std::vector<Path> runs_;           // ascending, each id once in a file
};

}  // namespace hstu
