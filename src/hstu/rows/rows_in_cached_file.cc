#include <algorithm>
#include <utility>
#include <vector>

#include "hstu/device/pinned_memory.h"
#include "hstu/rows/row_storage.h"
#include "hstu/rows/rows_below.h"

namespace hstu {
namespace {

constexpr std::int64_t kLeastLines = 2;

// A row is in its line, if it has one, or else in the file.
class RowsInCachedFile final : public RowsBelow {
 public:
  RowsInCachedFile(std::unique_ptr<RowFile> file, std::int64_t lines, const RowDirectory& directory,
                   Device device, LineExchange& exchange)
      : file_(std::move(file)),
        cache_(directory, std::max(lines, kLeastLines)),
        lines_(file_->width(), transfer_memory(device), below_chunk_bytes(file_->width(), cache_.lines()),
               cache_.lines()),
        exchange_(exchange) {}

  std::int64_t bytes() const override { return lines_.bytes() + cache_.bytes(); }
  void add(std::span<const std::int64_t> slots) override { cache_.add(slots, RowCache::kNowhere); }

  void move(std::span<const RowCache::Move> moves, Pace pace) override {
    // Rows that come and rows that leave have lines at the same time.
    const auto most = static_cast<std::size_t>(cache_.lines() / 2);
    for (std::size_t first = 0; first < moves.size(); first += most)
      move_some(moves.subspan(first, std::min(most, moves.size() - first)), pace);
  }
  void prefetch(std::span<const std::int64_t> slots) override {
    RowCache::Found found;
    cache_.pin_next(slots, 0, found);
    cache_.count(found);
    prefetched_ += transfer(cache_.bring_next(slots_at(found.missing, slots)), true);
    cache_.end_step();
  }
  void read(std::span<const std::int64_t> slots,
            const std::function<void(std::size_t, const float*)>& use) override {
    exchange_.settle();
    std::vector<std::int64_t> in_file;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (cache_.line_of(slots[i]) >= 0) continue;
      in_file.push_back(slots[i]);
      places.push_back(i);
    }
    for_rows(slots.size(), lines_.width(), [&](std::size_t i) {
      if (const std::int32_t line = cache_.line_of(slots[i]); line >= 0) use(i, lines_.row(line));
    });
    file_->read_each(in_file, [&](std::size_t i, const float* row) { use(places[i], row); });
  }
  void write(std::span<const std::int64_t> slots,
             const std::function<void(std::size_t, float*)>& fill) override {
    file_->write_each(slots, fill);
    cache_.add(slots, RowCache::kBelow);
  }
  std::optional<CacheCounts> counts() const override {
    const std::int64_t bytes = file_->width() * std::int64_t{sizeof(float)};
    const std::int64_t came = misses_ + prefetched_;
    return CacheCounts{cache_.lines(), hits_, misses_, prefetched_, came * bytes, cache_.left() * bytes};
  }

 private:
  void move_some(std::span<const RowCache::Move> moves, Pace pace) {
    const MovedSlots slots(moves);
    count(std::ssize(slots.in), bring(slots.in, true), pace);
    bring(slots.out, false);
    exchange_.start(moves, pace,
                    [&](std::size_t, std::int64_t slot) { return lines_.row(cache_.line_of(slot)); });
    cache_.end_step();
  }

  // Nothing waits for rows that travel beside a step.
  void count(std::int64_t rows, std::int64_t from_file, Pace pace) {
    if (pace == Pace::beside) {
      prefetched_ += from_file;
    } else {
      misses_ += from_file;
      hits_ += rows - from_file;
    }
  }

  // Lines for the rows at `slots`, until end_step(): they are read, or they are about to be written. How many
  // came from the file.
  std::int64_t bring(std::span<const std::int64_t> slots, bool reads) {
    std::vector<std::int64_t> lines(slots.size());
    RowCache::Found found;
    cache_.pin(slots, 0, lines.data(), found, !reads);
    cache_.count(found);
    return transfer(cache_.bring(slots_at(found.missing, slots), !reads), reads);
  }

  std::int64_t transfer(const RowCache::Moves& moves, bool reads) {
    if (moves.moves.empty() && moves.begin.empty()) return 0;
    lines_.grow(cache_.lines());
    exchange_.settle();  // the lines may be those of rows on their way
    const MovedSlots slots(moves.moves);
    std::vector<const float*> leaving;
    std::vector<float*> coming;
    for (const RowCache::Move& move : moves.moves) {
      if (move.out >= 0) leaving.push_back(lines_.row(move.line));
      if (move.in >= 0) coming.push_back(lines_.row(move.line));
    }
    file_->write(slots.out, leaving);
    if (!reads) return 0;
    file_->read(slots.in, coming);
    return std::ssize(coming);
  }

  std::unique_ptr<RowFile> file_;
  RowCache cache_;
  RowStorage lines_;
  LineExchange& exchange_;
  std::int64_t hits_ = 0, misses_ = 0, prefetched_ = 0;
};

}  // namespace

std::unique_ptr<RowsBelow> rows_in_cached_file(std::unique_ptr<RowFile> file, std::int64_t lines,
                                               const RowDirectory& directory, Device device,
                                               LineExchange& exchange) {
  return std::make_unique<RowsInCachedFile>(std::move(file), lines, directory, device, exchange);
}

}  // namespace hstu
