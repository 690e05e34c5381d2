#include "hstu/embedding/row_cache.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::uint8_t kMostUses = 255;
constexpr std::int64_t kCandidates = 4;      // lines of which one leaves
constexpr std::int64_t kUsesToHalving = 10;  // of a line, on average
constexpr std::int64_t kLinesAhead = 16;  // of the hand, whose rows are prefetched into the processor's cache

}  // namespace

RowCache::RowCache(const RowDirectory& rows, std::int64_t lines) : rows_(rows) {
  grow(lines);
}

void RowCache::grow(std::int64_t lines) {
  const std::int64_t before = this->lines();
  require(lines > before && lines < std::numeric_limits<std::int32_t>::max(),
          "expected {} to 2^31 - 2 lines, found {}", before + 1, lines);
  lines_.resize(static_cast<std::size_t>(lines));
  for (std::int64_t line = lines - 1; line >= before; --line)
    free_.push_back(static_cast<std::int32_t>(line));
}

std::int64_t RowCache::bytes() const {
  return static_cast<std::int64_t>(lines_.capacity() * sizeof(Line) +
                                   (line_of_.capacity() + free_.capacity()) * sizeof(std::int32_t));
}

void RowCache::add(std::span<const std::int64_t> slots, std::int32_t where) {
  if (static_cast<std::int64_t>(line_of_.size()) < rows_.slots())
    line_of_.resize(static_cast<std::size_t>(rows_.slots()), kNowhere);
  for (const std::int64_t slot : slots) {
    std::int32_t& line = line_of_[static_cast<std::size_t>(slot)];
    if (line >= 0) {  // of a row that was removed
      Line& old = lines_[static_cast<std::size_t>(line)];
      if (is_pinned(old)) --pinned_;
      old = {};
      free_.push_back(line);
    }
    line = where;
  }
}

std::int32_t RowCache::take_line(Moves& moves) {
  if (!free_.empty()) {
    const std::int32_t line = free_.back();
    free_.pop_back();
    return line;
  }
  std::int64_t candidates = std::min(kCandidates, lines() - pinned_);
  if (candidates == 0) return -1;
  std::int64_t found = -1;
  for (; candidates > 0; hand_ = hand_ + 1 == lines() ? 0 : hand_ + 1) {
    if (hand_ + kLinesAhead < lines()) {
      const std::int32_t ahead = lines_[static_cast<std::size_t>(hand_ + kLinesAhead)].slot;
      __builtin_prefetch(&line_of_[static_cast<std::size_t>(ahead)], 1);
      __builtin_prefetch(&rows_.row(ahead));
    }
    const Line& line = lines_[static_cast<std::size_t>(hand_)];
    if (is_pinned(line)) continue;
    --candidates;
    if (found < 0 || line.uses < lines_[static_cast<std::size_t>(found)].uses) found = hand_;
  }
  const Line& line = lines_[static_cast<std::size_t>(found)];
  // A row that was removed goes nowhere.
  const bool lives = rows_.row(line.slot).id != HostRow::kNoId;
  if (line.changed && lives) moves.moves.push_back({found, line.slot, -1});
  line_of_[static_cast<std::size_t>(line.slot)] = kBelow;
  return static_cast<std::int32_t>(found);
}

// From the memory below to a line of take_line().
void RowCache::come(std::int64_t slot, std::int32_t line, Moves& moves) {
  if (moves.moves.empty() || moves.moves.back().line != line) moves.moves.push_back({line, -1, -1});
  moves.moves.back().in = slot;
}

// A row that a step uses will change.
void RowCache::place(std::int64_t slot, std::int32_t line, std::uint32_t pin, bool used) {
  lines_[static_cast<std::size_t>(line)] = {static_cast<std::int32_t>(slot), pin, used,
                                            static_cast<std::uint8_t>(used ? 1 : 0)};
  line_of_[static_cast<std::size_t>(slot)] = line;
  ++pinned_;
}

// Into the processor's cache: what will be read of slots after `i`.
void RowCache::read_ahead(std::span<const std::int64_t> slots, std::int64_t i) const {
  const auto slot_at = [&](std::int64_t at) {
    return at < std::ssize(slots) ? slots[static_cast<std::size_t>(at)] : -1;
  };
  if (const std::int64_t slot = slot_at(i + 2 * kPrefetchDistance); slot >= 0)
    __builtin_prefetch(&line_of_[static_cast<std::size_t>(slot)]);
  if (const std::int64_t slot = slot_at(i + kPrefetchDistance); slot >= 0) {
    const std::int32_t line = line_of(slot);
    if (line >= 0) __builtin_prefetch(&lines_[static_cast<std::size_t>(line)], 1);
  }
}

std::vector<std::int64_t> RowCache::pin(std::span<const std::int64_t> slots) {
  const std::uint32_t pin = 2 * step_ + 1;
  const auto n = std::ssize(slots);
  std::vector<std::vector<std::int64_t>> missing_of(static_cast<std::size_t>(n / kLookupGrain + 1));
  std::atomic<std::int64_t> hits = 0, pinned = 0;
  parallel_blocks(n, kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t>& mine = missing_of[static_cast<std::size_t>(begin / kLookupGrain)];
    std::int64_t my_hits = 0, my_pinned = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      read_ahead(slots.first(static_cast<std::size_t>(end)), i);
      if (slots[i] < 0) continue;
      const std::int32_t at = line_of(slots[i]);
      if (at < 0) {
        mine.push_back(slots[i]);
        continue;
      }
      Line& line = lines_[static_cast<std::size_t>(at)];
      if (line.pin != pin) {
        ++my_hits;
        if (line.uses < kMostUses) ++line.uses;
      }
      if (!is_pinned(line)) ++my_pinned;
      line.pin = pin;
      line.changed = true;
    }
    hits += my_hits;
    pinned += my_pinned;
  });
  hits_ += hits;
  pinned_ += pinned;
  std::vector<std::int64_t> missing;
  for (const std::vector<std::int64_t>& some : missing_of)
    missing.insert(missing.end(), some.begin(), some.end());
  if (pinned_ + std::ssize(missing) > lines()) throw CacheTooSmall(pinned_ + std::ssize(missing), lines());
  uses_ += n;
  return missing;
}

RowCache::Moves RowCache::bring(std::span<const std::int64_t> missing) {
  Moves moves;
  for (const std::int64_t slot : missing) {
    const bool is_below = line_of(slot) == kBelow;
    const std::int32_t line = take_line(moves);
    if (is_below)
      come(slot, line, moves);
    else
      moves.begin.push_back({line, slot});
    misses_ += is_below ? 1 : 0;
    place(slot, line, 2 * step_ + 1, true);
  }
  return moves;
}

RowCache::Moves RowCache::prefetch(std::span<const std::int64_t> slots) {
  Moves moves;
  const std::uint32_t pin = 2 * (step_ + 1);
  std::vector<std::int64_t> missing;
  for (std::int64_t i = 0; i < std::ssize(slots); ++i) {
    read_ahead(slots, i);
    const std::int64_t slot = slots[static_cast<std::size_t>(i)];
    if (slot < 0) continue;
    const std::int32_t at = line_of(slot);
    if (at == kBelow) missing.push_back(slot);
    if (at < 0) continue;
    // A row of this step stays pinned as such; another one must not leave for those that come.
    Line& line = lines_[static_cast<std::size_t>(at)];
    if (is_pinned(line)) continue;
    line.pin = pin;
    ++pinned_;
  }
  for (const std::int64_t slot : missing) {
    const std::int32_t line = take_line(moves);
    if (line < 0) break;
    come(slot, line, moves);
    place(slot, line, pin, false);
    ++prefetched_;
  }
  return moves;
}

void RowCache::end_step() {
  ++step_;
  pinned_ = 0;
  if (uses_ < kUsesToHalving * lines()) return;
  uses_ = 0;
  parallel_blocks(lines(), std::int64_t{1} << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) lines_[static_cast<std::size_t>(at)].uses /= 2;
  });
}

RowCache::Moves RowCache::flush() {
  Moves moves;
  for (std::size_t at = 0; at < lines_.size(); ++at) {
    Line& line = lines_[at];
    if (!line.changed) continue;
    line.changed = line.pin == 2 * step_ + 1;  // those of a step that has not ended change again
    if (rows_.row(line.slot).id != HostRow::kNoId)
      moves.moves.push_back({static_cast<std::int64_t>(at), line.slot, -1});
  }
  return moves;
}

}  // namespace hstu
