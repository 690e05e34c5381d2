#include "hstu/dataset/distinct_counter.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <functional>
#include <queue>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {
namespace {

constexpr std::size_t kPageOverhead = 64;  // of the hash table's node, about
constexpr std::size_t kLeastIds = 512;     // of a page-sized buffer: smaller buffers need more calls

void sort_and_deduplicate(std::vector<std::int64_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// Reads the ids of one run sequentially.
class SortedRunReader {
 public:
  SortedRunReader(const Path& path, std::size_t buffer_ids)
      : path_(path), input_(path, std::ios::binary), buffer_(buffer_ids) {}

  bool next(std::int64_t& id) {
    if (at_ == filled_ && !fill()) return false;
    id = buffer_[at_++];
    return true;
  }

 private:
  bool fill() {
    input_.read(reinterpret_cast<char*>(buffer_.data()),
                static_cast<std::streamsize>(buffer_.size() * sizeof(std::int64_t)));
    check(!input_.bad(), "cannot read {}", path_.string());
    filled_ = static_cast<std::size_t>(input_.gcount()) / sizeof(std::int64_t);
    at_ = 0;
    return filled_ > 0;
  }

  Path path_;
  std::ifstream input_;
  std::vector<std::int64_t> buffer_;
  std::size_t at_ = 0, filled_ = 0;
};

}  // namespace

DistinctCounter::DistinctCounter(Path folder, std::int64_t memory)
    : folder_(std::move(folder)),
      most_pages_(static_cast<std::size_t>(memory) / 2 / (sizeof(Page) + kPageOverhead)),
      most_loose_(std::max(kLeastIds, static_cast<std::size_t>(memory) / 2 / sizeof(std::int64_t))) {}

DistinctCounter::~DistinctCounter() {
  std::error_code ignored;
  if (!runs_.empty()) std::filesystem::remove_all(folder_, ignored);
}

void DistinctCounter::add(const IntegerColumn& ids) {
  ids.visit([&](const auto& values) {
    for (const auto id : values) add_id(static_cast<std::int64_t>(id));
  });
}

void DistinctCounter::add_id(std::int64_t id) {
  if (Page* const page = find_page(id >> kPageBits)) {
    const auto bit = static_cast<std::uint64_t>(id) & ((std::uint64_t{1} << kPageBits) - 1);
    (*page)[bit / 64] |= std::uint64_t{1} << (bit % 64);
    return;
  }
  loose_.push_back(id);
  if (loose_.size() >= most_loose_) spill();
}

DistinctCounter::Page* DistinctCounter::find_page(std::int64_t number) {
  if (number == last_number_ && last_page_ != nullptr) return last_page_;
  auto found = pages_.find(number);
  if (found == pages_.end()) {
    // After the last page none is added, so an id is either always in a page or always loose.
    if (pages_.size() >= most_pages_) return nullptr;
    found = pages_.emplace(number, std::make_unique<Page>()).first;
  }
  last_number_ = number;
  last_page_ = found->second.get();
  return last_page_;
}

void DistinctCounter::spill() {
  sort_and_deduplicate(loose_);
  // Many repeated ids: continue collecting. A buffer that stays nearly full would be sorted repeatedly.
  if (loose_.size() < most_loose_ / 2) return;
  std::filesystem::create_directories(folder_);
  runs_.push_back(folder_ / fmt::format("ids-{}", runs_.size()));
  OutputFile file(runs_.back());
  file.write(loose_.data(), loose_.size() * sizeof(std::int64_t));
  file.flush();
  loose_.clear();
}

std::int64_t DistinctCounter::count() {
  std::int64_t sum = 0;
  for (const auto& [number, page] : pages_) {
    for (const std::uint64_t word : *page) sum += std::popcount(word);
  }
  pages_.clear();
  sort_and_deduplicate(loose_);
  if (runs_.empty()) return sum + static_cast<std::int64_t>(loose_.size());
  return sum + count_spilled();
}

std::int64_t DistinctCounter::count_spilled() {
  const std::size_t buffer_ids = std::max(kLeastIds, most_loose_ / runs_.size());  // the pages' share
  std::vector<SortedRunReader> readers;
  readers.reserve(runs_.size());
  for (const Path& run : runs_) readers.emplace_back(run, buffer_ids);

  // The smallest id of every run, and of the ids that never left memory (the run after the last).
  using Head = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  std::size_t loose_at = 0;
  const auto push_next = [&](std::size_t run) {
    std::int64_t id = 0;
    if (run < readers.size()) {
      if (readers[run].next(id)) heads.emplace(id, run);
    } else if (loose_at < loose_.size()) {
      heads.emplace(loose_[loose_at++], run);
    }
  };
  for (std::size_t run = 0; run <= readers.size(); ++run) push_next(run);
  std::int64_t sum = 0, last = -1;
  while (!heads.empty()) {
    const auto [id, run] = heads.top();
    heads.pop();
    if (sum == 0 || id != last) ++sum;
    last = id;
    push_next(run);
  }
  return sum;
}

}  // namespace hstu
