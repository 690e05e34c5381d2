#include <algorithm>
#include <utility>
#include <vector>

#include "hstu/device/pinned_memory.h"
#include "hstu/embedding/row_storage.h"
#include "hstu/embedding/rows_below.h"

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
    const std::int64_t before = rows_in_;
    transfer(cache_.bring_next(at(found.missing, slots)), true);
    prefetched_ += rows_in_ - before;
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
    return CacheCounts{cache_.lines(), hits_, misses_, prefetched_, rows_in_ * bytes, rows_out_ * bytes};
  }

 private:
  static std::vector<std::int64_t> at(std::span<const std::int64_t> places,
                                      std::span<const std::int64_t> slots) {
    std::vector<std::int64_t> found;
    found.reserve(places.size());
    for (const std::int64_t place : places) found.push_back(slots[static_cast<std::size_t>(place)]);
    return found;
  }

  void move_some(std::span<const RowCache::Move> moves, Pace pace) {
    const MovedSlots slots(moves);
    const std::int64_t before = rows_in_;
    bring(slots.in, true);
    count(std::ssize(slots.in), rows_in_ - before, pace);
    bring(slots.out, false);
    const auto row_of = [&](std::int64_t slot) {
      return slot < 0 ? nullptr : lines_.row(cache_.line_of(slot));
    };
    auto* const list = exchange_.list(std::ssize(moves));
    for (std::size_t i = 0; i < moves.size(); ++i)
      list[i] = {moves[i].line, row_of(moves[i].out), row_of(moves[i].in)};
    exchange_.start(list, std::ssize(moves), pace);
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

  // Lines for the rows at `slots`, until end_step(): they are read, or they are about to be written.
  void bring(std::span<const std::int64_t> slots, bool reads) {
    std::vector<std::int64_t> lines(slots.size());
    RowCache::Found found;
    cache_.pin(slots, 0, lines.data(), found, !reads);
    cache_.count(found);
    transfer(cache_.bring(at(found.missing, slots), !reads), reads);
  }

  void transfer(const RowCache::Moves& moves, bool reads) {
    if (moves.moves.empty() && moves.begin.empty()) return;
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
    rows_out_ += std::ssize(leaving);
    if (!reads) return;
    file_->read(slots.in, coming);
    rows_in_ += std::ssize(coming);
  }

  std::unique_ptr<RowFile> file_;
  RowCache cache_;
  RowStorage lines_;
  LineExchange& exchange_;
  std::int64_t hits_ = 0, misses_ = 0, prefetched_ = 0, rows_in_ = 0, rows_out_ = 0;
};

}  // namespace

std::unique_ptr<RowsBelow> rows_in_cached_file(std::unique_ptr<RowFile> file, std::int64_t lines,
                                               const RowDirectory& directory, Device device,
                                               LineExchange& exchange) {
  return std::make_unique<RowsInCachedFile>(std::move(file), lines, directory, device, exchange);
}

}  // namespace hstu
