// Counts distinct ids exactly and in bounded memory, for any number and any distribution of ids.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/integer_column.h"

namespace hstu {

// Ids from dense ranges take one bit each, in pages that are allocated on first use. When the pages take half
// of `memory` (sparse ids, such as hashes, need one page each), further ids are collected, sorted and spilled
// into `folder`; merging them at the end removes duplicates.
class DistinctCounter {
 public:
  // The folder is created when it is needed and removed by the destructor; nothing else may use it.
  DistinctCounter(Path folder, std::int64_t memory);
  ~DistinctCounter();
  DistinctCounter(const DistinctCounter&) = delete;
  DistinctCounter& operator=(const DistinctCounter&) = delete;

  void add(const IntegerColumn& ids);
  // Number of distinct ids. Call it once, at the end.
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
  std::int64_t last_number_ = -1;  // of the last page used
  Page* last_page_ = nullptr;
  std::vector<std::int64_t> loose_;  // ids without a page, not sorted yet
  std::vector<Path> runs_;           // ascending, each id once in a file
};

}  // namespace hstu
