#include "hstu/rows/row_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>

#include "hstu/base/error.h"
#include "hstu/base/threads.h"
#include "hstu/rows/placement.h"

namespace hstu {
namespace {

constexpr std::uint8_t kMostUses = 255;
constexpr std::int64_t kUsesToHalving = 10;  // of a line, on average

constexpr std::int64_t kGroupGrain = 64;  // groups of a block of work of one thread

}  // namespace

std::vector<std::int64_t> slots_at(std::span<const std::int64_t> places,
                                   std::span<const std::int64_t> slots) {
  std::vector<std::int64_t> found(places.size());
  parallel_blocks(std::ssize(places), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      found[i] = slots[static_cast<std::size_t>(places[i])];
  });
  return found;
}

RowCache::RowCache(const RowDirectory& rows, std::int64_t lines) : rows_(rows) {
  grow(lines);
}

void RowCache::grow(std::int64_t lines) {
  const std::int64_t before = this->lines();
  require(lines > before && lines < std::numeric_limits<std::int32_t>::max(),
          "expected {} to 2^31 - 2 lines, found {}", before + 1, lines);
  lines_.resize(static_cast<std::size_t>(lines));
  slot_of_.resize(static_cast<std::size_t>(lines), -1);
  for (std::int64_t line = lines - 1; line >= before; --line)
    free_.push_back(static_cast<std::int32_t>(line));
}

std::int64_t RowCache::bytes() const {
  return static_cast<std::int64_t>(lines_.capacity() * sizeof(Line) +
                                   (slot_of_.capacity() + line_of_.capacity() + free_.capacity()) *
                                       sizeof(std::int32_t));
}

std::int64_t RowCache::groups() const {
  return (lines() + kGroup - 1) / kGroup;
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
      slot_of_[static_cast<std::size_t>(line)] = -1;
      free_.push_back(line);
    }
    line = where;
  }
}

RowCache::Found RowCache::Found::of(std::span<const Found> parts) {
  Found all;
  std::size_t missing = 0;
  for (const Found& part : parts) missing += part.missing.size();
  all.missing.reserve(missing);
  for (const Found& part : parts) {
    all.missing.insert(all.missing.end(), part.missing.begin(), part.missing.end());
    all.hits += part.hits;
    all.pinned += part.pinned;
  }
  return all;
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

void RowCache::pin(std::span<const std::int64_t> slots, std::int64_t first, std::int64_t* lines, Found& found,
                   bool changes) {
  const std::uint32_t pin = 2 * step_ + 1;
  for (std::int64_t i = 0; i < std::ssize(slots); ++i) {
    read_ahead(slots, i);
    const std::int64_t slot = slots[static_cast<std::size_t>(i)];
    lines[i] = slot < 0 ? slot : line_of(slot);
    if (slot < 0) continue;
    if (lines[i] < 0) {
      found.missing.push_back(first + i);
      continue;
    }
    Line& line = lines_[static_cast<std::size_t>(lines[i])];
    if (line.pin != pin) {
      ++found.hits;
      if (line.uses < kMostUses) ++line.uses;
    }
    if (!is_pinned(line)) ++found.pinned;
    line.pin = pin;
    line.changed = line.changed || changes;
  }
}

// A row of this step stays pinned as such; another one must not leave for those that come.
void RowCache::pin_next(std::span<const std::int64_t> slots, std::int64_t first, Found& found) {
  for (std::int64_t i = 0; i < std::ssize(slots); ++i) {
    read_ahead(slots, i);
    const std::int64_t slot = slots[static_cast<std::size_t>(i)];
    if (slot < 0) continue;
    const std::int32_t at = line_of(slot);
    if (at == kBelow) found.missing.push_back(first + i);
    if (at < 0) continue;
    Line& line = lines_[static_cast<std::size_t>(at)];
    if (is_pinned(line)) continue;
    line.pin = 2 * (step_ + 1);
    ++found.pinned;
  }
}

void RowCache::count(const Found& found) {
  hits_ += found.hits;
  uses_ += found.hits;
  pinned_ += found.pinned;
}

void RowCache::check_room(std::int64_t rows) const {
  if (pinned_ + rows > lines()) throw CacheTooSmall(pinned_ + rows, lines());
}

// Of each group, the least used `most` of the lines that are not pinned.
void RowCache::take_of_groups(std::int64_t first, std::int64_t last, std::int64_t most, std::uint32_t pin,
                              std::vector<Taken>& taken) {
  const std::size_t before = taken.size();
  for (std::int64_t g = first; g < last; ++g) {
    const std::int64_t begin = (g % groups()) * kGroup, end = std::min(begin + kGroup, lines());
    std::array<std::int64_t, kGroup> others;  // uses, then the place in the group
    std::int64_t n = 0;
    for (std::int64_t at = begin; at < end; ++at) {
      const Line& line = lines_[static_cast<std::size_t>(at)];
      if (!is_pinned(line)) others[static_cast<std::size_t>(n++)] = line.uses * kGroup + (at - begin);
    }
    const std::int64_t leaving = std::min(n, most);
    std::partial_sort(others.begin(), others.begin() + leaving, others.begin() + n);
    for (std::int64_t i = 0; i < leaving; ++i) {
      const std::int64_t at = begin + others[static_cast<std::size_t>(i)] % kGroup;
      lines_[static_cast<std::size_t>(at)].pin = pin;
      const std::int32_t slot = slot_of_[static_cast<std::size_t>(at)];
      __builtin_prefetch(&line_of_[static_cast<std::size_t>(slot)], 1);
      taken.push_back({static_cast<std::int32_t>(at), slot});
    }
  }
  for (Taken& one : std::span(taken).subspan(before)) {
    line_of_[static_cast<std::size_t>(one.out)] = kBelow;
    // A row that was removed goes nowhere.
    if (!lines_[static_cast<std::size_t>(one.line)].changed || !rows_.lives(one.out)) one.out = -1;
  }
}

// `n`, or fewer if all others are pinned.
void RowCache::take_lines(std::int64_t n, std::uint32_t pin) {
  taken_.clear();
  n = std::min(n, lines() - pinned_);
  taken_.reserve(static_cast<std::size_t>(n));
  for (; std::ssize(taken_) < n && !free_.empty(); free_.pop_back()) {
    taken_.push_back({free_.back(), -1});
    lines_[static_cast<std::size_t>(free_.back())].pin = pin;
  }
  while (std::ssize(taken_) < n) {
    const std::int64_t missing = n - std::ssize(taken_);
    if (missing < kLookupGrain) {
      take_of_groups(hand_, hand_ + 1, 1, pin, taken_);
      hand_ = (hand_ + 1) % groups();
      continue;
    }
    // As many lines of each group as give no line too many: threads can share the groups.
    const std::int64_t visited = std::min(missing, groups()), most = missing / visited;
    std::vector<std::vector<Taken>> of_block(
        static_cast<std::size_t>((visited + kGroupGrain - 1) / kGroupGrain));
    parallel_blocks(visited, kGroupGrain, [&](std::int64_t begin, std::int64_t end) {
      std::vector<Taken>& mine = of_block[static_cast<std::size_t>(begin / kGroupGrain)];
      mine.reserve(static_cast<std::size_t>((end - begin) * most));
      take_of_groups(hand_ + begin, hand_ + end, most, pin, mine);
    });
    for (const std::vector<Taken>& some : of_block) taken_.insert(taken_.end(), some.begin(), some.end());
    hand_ = (hand_ + visited) % groups();
  }
  pinned_ += n;
}

void RowCache::place(std::span<const std::int64_t> slots, const Line& begins) {
  take_lines(std::ssize(slots), begins.pin);
  moves_.moves.resize(taken_.size());
  moves_.begin.clear();
  std::atomic<bool> any_begins = false;
  std::atomic<std::int64_t> left = 0;
  parallel_blocks(std::ssize(taken_), kLookupGrain, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t out_of_block = 0;
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const auto [line, out] = taken_[i];
      std::int32_t& at = line_of_[static_cast<std::size_t>(slots[i])];
      moves_.moves[i] = {line, out, at == kBelow ? slots[i] : -1};
      if (out >= 0) ++out_of_block;
      if (at != kBelow) any_begins = true;
      lines_[static_cast<std::size_t>(line)] = begins;
      slot_of_[static_cast<std::size_t>(line)] = static_cast<std::int32_t>(slots[i]);
      at = line;
    }
    left += out_of_block;
  });
  left_ += left;
  if (!any_begins) return;
  for (std::size_t i = 0; i < taken_.size(); ++i)
    if (moves_.moves[i].in < 0) moves_.begin.push_back({moves_.moves[i].line, slots[i]});
  std::erase_if(moves_.moves, [](const Move& move) { return move.out < 0 && move.in < 0; });
}

const RowCache::Moves& RowCache::bring(std::span<const std::int64_t> slots, bool changes) {
  check_room(std::ssize(slots));
  place(slots, {.pin = 2 * step_ + 1, .changed = changes, .uses = 1});
  uses_ += std::ssize(slots);
  misses_ += std::ssize(slots) - std::ssize(moves_.begin);
  return moves_;
}

const RowCache::Moves& RowCache::bring_next(std::span<const std::int64_t> slots) {
  place(slots, {.pin = 2 * (step_ + 1), .changed = false, .uses = 0});
  prefetched_ += std::ssize(moves_.moves);
  return moves_;
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
    if (rows_.lives(slot_of_[at])) moves.moves.push_back({static_cast<std::int64_t>(at), slot_of_[at], -1});
  }
  left_ += std::ssize(moves.moves);
  return moves;
}

}  // namespace hstu
