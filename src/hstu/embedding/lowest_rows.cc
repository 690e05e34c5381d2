#include "hstu/embedding/lowest_rows.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kGrain = 1 << 16;  // rows a block of a scan
constexpr std::int64_t kSample = 4096;
constexpr RowOrder kHighest{std::numeric_limits<std::int64_t>::max(),
                            std::numeric_limits<std::int64_t>::max()};

bool higher(const LowestRows::Row& a, const LowestRows::Row& b) {
  return a.order > b.order;
}

}  // namespace

// About `wanted` rows are at or below it.
RowOrder LowestRows::threshold(std::int64_t wanted) const {
  if (rows_.rows() <= 2 * kSample || wanted >= rows_.rows() / 2) return kHighest;
  std::vector<RowOrder> sample;
  for (std::int64_t i = 0; i < kSample; ++i) {
    const std::int64_t slot = rows_.slots() / kSample * i;
    if (rows_.row(slot).id != HostRow::kNoId) sample.push_back(order(slot));
  }
  const auto place = static_cast<std::int64_t>(sample.size()) * wanted / rows_.rows() + 1;
  if (place >= static_cast<std::int64_t>(sample.size())) return kHighest;
  std::nth_element(sample.begin(), sample.begin() + place, sample.end());
  return sample[static_cast<std::size_t>(place)];
}

void LowestRows::scan(std::int64_t wanted) {
  threshold_ = threshold(wanted);
  sorted_.clear();
  heap_.clear();
  next_ = 0;
  std::mutex mutex;
  parallel_blocks(rows_.slots(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Row> mine;
    for (std::int64_t slot = begin; slot < end; ++slot) {
      if (rows_.row(slot).id == HostRow::kNoId) continue;
      if (const RowOrder row = order(slot); row <= threshold_)
        mine.push_back({row, static_cast<std::uint32_t>(slot)});
    }
    const std::scoped_lock lock(mutex);
    sorted_.insert(sorted_.end(), mine.begin(), mine.end());
  });
  std::sort(sorted_.begin(), sorted_.end(), [](const Row& a, const Row& b) { return a.order < b.order; });
}

void LowestRows::push(const Row& row) {
  heap_.push_back(row);
  std::push_heap(heap_.begin(), heap_.end(), higher);
}

LowestRows::Row LowestRows::pop() {
  if (heap_.empty() || (next_ < sorted_.size() && sorted_[next_].order <= heap_.front().order))
    return sorted_[next_++];
  std::pop_heap(heap_.begin(), heap_.end(), higher);
  const Row row = heap_.back();
  heap_.pop_back();
  return row;
}

void LowestRows::add(std::int64_t slot) {
  if (const RowOrder row = order(slot); row <= threshold_) push({row, static_cast<std::uint32_t>(slot)});
}

void LowestRows::put_back(std::span<const Row> rows) {
  for (const Row& row : rows)
    if (row.order <= threshold_) push(row);
}

std::vector<LowestRows::Row> LowestRows::take(std::int64_t count, std::uint32_t busy) {
  std::vector<Row> taken, waiting;
  if (count <= 0) return taken;
  // New rows may have filled the heap with many rows that were never the lowest.
  if (static_cast<std::int64_t>(heap_.size()) > rows_.rows() / 8 + 4 * count) {
    sorted_.clear();
    heap_.clear();
    next_ = 0;
  }
  bool scanned_all = false;
  for (std::int64_t wanted = std::max(2 * count, rows_.rows() / 16);; wanted *= 2) {
    RowOrder last{-1, -1};
    while (static_cast<std::int64_t>(taken.size()) < count && !empty()) {
      if (next_ + 8 < sorted_.size()) __builtin_prefetch(&rows_.row(sorted_[next_ + 8].slot));
      Row row = pop();
      const HostRow& now = rows_.row(row.slot);
      if (now.id != row.order.id) continue;  // it was removed
      if (const RowOrder risen = order(row.slot); risen != row.order) {
        if (risen <= threshold_) push({risen, row.slot});
        continue;
      }
      if (row.order == last) continue;  // the id was removed and came back to the same slot
      last = row.order;
      row.busy = now.seen == busy;
      (row.busy ? waiting : taken).push_back(row);
    }
    if (static_cast<std::int64_t>(taken.size()) == count) break;
    if (scanned_all) {
      const auto more = std::min(waiting.size(), static_cast<std::size_t>(count) - taken.size());
      taken.insert(taken.end(), waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(more));
      waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(more));
      break;
    }
    taken.clear();
    waiting.clear();
    scan(wanted);
    scanned_all = threshold_ == kHighest;
  }
  put_back(waiting);
  return taken;
}

}  // namespace hstu
