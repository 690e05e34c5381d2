#include "hstu/embedding/lowest_rows.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::int64_t kScanGrain = 1 << 16;  // rows a block
constexpr std::int64_t kSample = 4096;
constexpr std::int64_t kLeastFront = 256;
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

void LowestRows::clear() {
  threshold_ = front_threshold_ = kBelowAll;
  front_.clear();
  pool_.clear();
}

void LowestRows::scan(std::int64_t wanted) {
  clear();
  threshold_ = threshold(wanted);
  scanned_ = true;
  std::mutex mutex;
  parallel_blocks(rows_.slots(), kScanGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Row> mine;
    for (std::int64_t slot = begin; slot < end; ++slot) {
      if (rows_.row(slot).id == HostRow::kNoId) continue;
      if (const RowOrder row = order(slot); row <= threshold_)
        mine.push_back({row, static_cast<std::uint32_t>(slot)});
    }
    const std::scoped_lock lock(mutex);
    pool_.insert(pool_.end(), mine.begin(), mine.end());
  });
}

void LowestRows::push(const Row& row) {
  if (row.order > threshold_) return;
  (row.order <= front_threshold_ ? front_ : pool_).push_back(row);
}

// Moves the lowest rows of the pool to an empty front. False: there are none.
bool LowestRows::refill(std::int64_t wanted) {
  if (!front_.empty()) return true;
  if (pool_.empty()) return false;
  const std::size_t n = std::min(pool_.size(), static_cast<std::size_t>(std::max(4 * wanted, kLeastFront)));
  const auto first = pool_.end() - static_cast<std::ptrdiff_t>(n);
  std::nth_element(pool_.begin(), first, pool_.end(), higher);
  front_threshold_ = n == pool_.size() ? threshold_ : first->order;
  front_.assign(first, pool_.end());
  pool_.erase(first, pool_.end());
  return true;
}

void LowestRows::add(std::int64_t slot) {
  push({order(slot), static_cast<std::uint32_t>(slot)});
}

void LowestRows::put_back(std::span<const Row> rows) {
  for (const Row& row : rows) push({row.order, row.slot});
}

std::vector<LowestRows::Row> LowestRows::take(std::int64_t count, std::uint32_t busy) {
  std::vector<Row> taken, waiting, lowest;
  if (count <= 0) return taken;
  const auto missing = [&] { return count - static_cast<std::int64_t>(taken.size()); };
  // New rows may have filled them with many rows that were never the lowest.
  if (static_cast<std::int64_t>(front_.size() + pool_.size()) > rows_.rows() / 4 + 8 * count) clear();
  bool scanned_all = false;
  for (std::int64_t wanted = std::max(2 * count, rows_.rows() / 16);; wanted *= 2) {
    // An order that has risen since is one that was too low here, so that what is taken is the lowest
    // whatever the others turn out to be.
    while (missing() > 0 && refill(missing())) {
      const auto first =
          front_.end() - std::min<std::ptrdiff_t>(missing(), static_cast<std::ptrdiff_t>(front_.size()));
      std::nth_element(front_.begin(), first, front_.end(), higher);
      lowest.assign(first, front_.end());
      front_.erase(first, front_.end());
      for (std::size_t i = 0; i < lowest.size(); ++i) {
        if (i + 8 < lowest.size()) __builtin_prefetch(&rows_.row(lowest[i + 8].slot));
        Row row = lowest[i];
        const HostRow& now = rows_.row(row.slot);
        if (now.id != row.order.id) continue;  // it was removed
        if (const RowOrder risen = order(row.slot); risen != row.order) {
          push({risen, row.slot});
          continue;
        }
        row.busy = now.seen == busy;
        (row.busy ? waiting : taken).push_back(row);
      }
    }
    if (missing() == 0) break;
    if (scanned_all) {
      const auto more = std::min<std::ptrdiff_t>(missing(), static_cast<std::ptrdiff_t>(waiting.size()));
      std::nth_element(waiting.begin(), waiting.begin() + more, waiting.end(), leaves_before);
      taken.insert(taken.end(), waiting.begin(), waiting.begin() + more);
      waiting.erase(waiting.begin(), waiting.begin() + more);
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
