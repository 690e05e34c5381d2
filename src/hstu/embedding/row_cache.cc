#include "hstu/embedding/row_cache.h"

#include <algorithm>
#include <limits>
#include <mutex>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"

namespace hstu {
namespace {

constexpr std::uint8_t kMostUses = 255;
constexpr std::int64_t kCandidates = 4;      // lines of which one leaves
constexpr std::int64_t kUsesToHalving = 10;  // of a line, on average

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
void RowCache::bring(std::int64_t slot, std::int32_t line, Moves& moves) {
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

RowCache::Moves RowCache::use(std::span<const std::int64_t> slots) {
  const std::uint32_t pin = 2 * step_ + 1;
  std::mutex mutex;
  std::vector<std::int64_t> missing;
  parallel_blocks(
      static_cast<std::int64_t>(slots.size()), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int64_t> mine;
        std::int64_t hits = 0, pinned = 0;
        for (std::int64_t i = begin; i < end; ++i) {
          if (i + 2 * kPrefetchDistance < end && slots[i + 2 * kPrefetchDistance] >= 0)
            __builtin_prefetch(&line_of_[static_cast<std::size_t>(slots[i + 2 * kPrefetchDistance])]);
          if (i + kPrefetchDistance < end && slots[i + kPrefetchDistance] >= 0) {
            const std::int32_t ahead = line_of(slots[i + kPrefetchDistance]);
            if (ahead >= 0) __builtin_prefetch(&lines_[static_cast<std::size_t>(ahead)], 1);
          }
          if (slots[i] < 0) continue;
          const std::int32_t at = line_of(slots[i]);
          if (at < 0) {
            mine.push_back(slots[i]);
            continue;
          }
          Line& line = lines_[static_cast<std::size_t>(at)];
          if (line.pin != pin) {
            ++hits;
            if (line.uses < kMostUses) ++line.uses;
          }
          if (!is_pinned(line)) ++pinned;
          line.pin = pin;
          line.changed = true;
        }
        const std::scoped_lock lock(mutex);
        hits_ += hits;
        pinned_ += pinned;
        missing.insert(missing.end(), mine.begin(), mine.end());
      });
  const auto more = static_cast<std::int64_t>(missing.size());
  if (pinned_ + more > lines()) throw CacheTooSmall(pinned_ + more, lines());
  uses_ += std::ssize(slots);
  Moves moves;
  for (const std::int64_t slot : missing) {
    const bool is_below = line_of(slot) == kBelow;
    const std::int32_t line = take_line(moves);
    if (is_below)
      bring(slot, line, moves);
    else
      moves.begin.push_back({line, slot});
    misses_ += is_below ? 1 : 0;
    place(slot, line, pin, true);
  }
  return moves;
}

RowCache::Moves RowCache::prefetch(std::span<const std::int64_t> slots) {
  Moves moves;
  const std::uint32_t pin = 2 * (step_ + 1);
  std::vector<std::int64_t> missing;
  for (const std::int64_t slot : slots) {
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
    bring(slot, line, moves);
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
