#include "hstu/batching/history.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::int64_t kWord = 64;  // events examined together

HistoryRule::Pool find_pool(const std::string& pool, const Manifest& manifest) {
  std::vector<std::string> known;
  for (const ActionBit& action : manifest.actions) {
    if (action.name == pool) return {action.bit, static_cast<std::int64_t>(known.size())};
    known.push_back(action.name);
  }
  fail_usage("pools: the dataset has no action \"{}\"{}", pool, suggestion(pool, known));
}

// The index of the n-th set bit, n from 0.
std::int64_t nth_bit(std::uint64_t mask, std::int64_t n) {
  for (; n > 0; --n) mask &= mask - 1;
  return std::countr_zero(mask);
}

void expect_positive(const char* name, std::int64_t value) {
  if (value < 1) fail_usage("{}: expected at least 1, found {}", name, value);
}

}  // namespace

HistoryRule resolve_history(const DataOptions& options, const Manifest& manifest) {
  expect_positive("history_length", options.history_length);
  expect_positive("scan_limit", options.scan_limit);
  HistoryRule rule;
  const std::vector<std::string>& pools = options.pools.empty() ? manifest.pools : options.pools;
  for (const std::string& pool : pools) {
    rule.pools.push_back(find_pool(pool, manifest));
    const std::uint8_t bit = rule.pools.back().bit;
    if (rule.pool_bits & bit) fail_usage("pools: \"{}\" is named twice", pool);
    rule.pool_bits |= bit;
  }
  const auto pool_count = static_cast<std::int64_t>(pools.size());
  if (pool_count == 0) fail_usage("pools: none is named, so no event could enter a history");
  rule.scan_limit = options.scan_limit;
  rule.longest = options.history_length;
  if (options.strategy == HistoryStrategy::interleaved) {
    rule.pool_capped = true;
    rule.pool_cap = std::max<std::int64_t>(1, options.history_length / pool_count);
    rule.longest = rule.pool_cap * pool_count;
  }
  rule.longest = std::min(rule.longest, rule.scan_limit);
  if (options.max_sequence != 0) {
    const auto contextual_tokens = static_cast<std::int64_t>(options.contextual.size());
    const std::int64_t budget = options.max_sequence - 1 - contextual_tokens;
    if (budget < 1) {
      fail_usage(
          "max_sequence: {} leaves no room for history beside {} contextual tokens and the candidate; "
          "expected at least {}",
          options.max_sequence, contextual_tokens, contextual_tokens + 2);
    }
    rule.longest = std::min(rule.longest, budget);
  }
  return rule;
}

HistoryGatherer::HistoryGatherer(std::span<const std::uint8_t> action, std::vector<PoolCounts> counts,
                                 const HistoryRule& rule)
    : action_(action.data()), segments_(std::move(counts)), rule_(rule) {
  const std::int64_t selectable =
      rule.pool_capped ? rule.pool_cap * static_cast<std::int64_t>(rule.pools.size()) : rule.longest;
  positions_.resize(static_cast<std::size_t>(std::min(selectable, rule.scan_limit)));
  starts_.reserve(rule.pools.size());
  open_.reserve(rule.pools.size());
}

// The running counts cover all users and do not start again at `begin`, but only events at or after it count:
// a search that ends before `begin` means that the pool has fewer events.
std::int64_t HistoryGatherer::start_of_pool(const HistoryRule::Pool& pool, std::int64_t begin,
                                            std::int64_t anchor) const {
  std::int64_t block = anchor / kPoolBlock;
  std::int64_t before = counts_.before(block, pool.action);  // finally: before the first wanted event
  for (std::int64_t p = block * kPoolBlock; p < anchor; p += kWord) {
    before += std::popcount(events_with(action_ + p, std::min(kWord, anchor - p), pool.bit));
  }
  before -= rule_.pool_cap;
  std::int64_t low = begin / kPoolBlock;
  if (counts_.before(low, pool.action) > before) return begin;
  while (block > low) {  // the last block with at most `before` events before it
    const std::int64_t middle = low + (block - low + 1) / 2;
    if (counts_.before(middle, pool.action) <= before) {
      low = middle;
    } else {
      block = middle - 1;
    }
  }
  std::int64_t skip = before - counts_.before(low, pool.action);
  for (std::int64_t p = low * kPoolBlock; p < anchor; p += kWord) {
    const std::uint64_t mask = events_with(action_ + p, std::min(kWord, anchor - p), pool.bit);
    const std::int64_t found = std::popcount(mask);
    if (skip < found) return std::max(begin, p + nth_bit(mask, skip));
    skip -= found;
  }
  fail("{}: the running counts of the pools do not fit the actions: prepare the dataset again",
       kPoolCountsFile);
}

std::int64_t HistoryGatherer::start_of_all(std::int64_t begin, std::int64_t anchor) const {
  std::int64_t wanted = rule_.longest;
  while (anchor > begin) {
    const std::int64_t n = std::min(kWord, anchor - begin);
    const std::uint64_t mask = events_with(action_ + anchor - n, n, rule_.pool_bits);
    const std::int64_t found = std::popcount(mask);
    if (found >= wanted) return anchor - n + nth_bit(mask, found - wanted);
    wanted -= found;
    anchor -= n;
  }
  return begin;
}

// Appends the events of any of the pools, block by block; an empty block costs two reads per pool.
void HistoryGatherer::append(std::int64_t begin, std::int64_t end, std::span<const HistoryRule::Pool> pools) {
  std::uint8_t bits = 0;
  for (const HistoryRule::Pool& pool : pools) bits = static_cast<std::uint8_t>(bits | pool.bit);
  while (begin < end) {
    const std::int64_t block = begin / kPoolBlock;
    const std::int64_t stop = std::min(end, (block + 1) * kPoolBlock);
    const bool counted = block + 1 < counts_.end_block();
    const bool empty = counted && std::all_of(pools.begin(), pools.end(), [&](const HistoryRule::Pool& pool) {
                         return counts_.before(block, pool.action) == counts_.before(block + 1, pool.action);
                       });
    for (; !empty && begin < stop; begin += kWord) {
      std::uint64_t mask = events_with(action_ + begin, std::min(kWord, stop - begin), bits);
      check(selected_ + static_cast<std::size_t>(std::popcount(mask)) <= positions_.size(),
            "{}: the running counts of the pools do not fit the actions: prepare the dataset again",
            kPoolCountsFile);
      for (; mask != 0; mask &= mask - 1) positions_[selected_++] = begin + std::countr_zero(mask);
    }
    begin = stop;
  }
}

void HistoryGatherer::gather_range(std::int64_t user_start, std::int64_t anchor) {
  const std::int64_t begin = std::max(user_start, anchor - rule_.scan_limit);
  std::size_t segment = segments_.size() - 1;
  while (segment > 0 && user_start / kPoolBlock < segments_[segment].first_block()) --segment;
  counts_ = segments_[segment];
  if (!rule_.pool_capped) {
    append(start_of_all(begin, anchor), anchor, rule_.pools);
  } else {
    starts_.clear();
    for (const HistoryRule::Pool& pool : rule_.pools) {
      starts_.push_back({start_of_pool(pool, begin, anchor), pool});
    }
    std::sort(starts_.begin(), starts_.end(),
              [](const Start& a, const Start& b) { return a.position < b.position; });
    open_.clear();  // pools whose first wanted event has been reached
    for (std::size_t s = 0; s < starts_.size(); ++s) {
      open_.push_back(starts_[s].pool);
      append(starts_[s].position, s + 1 < starts_.size() ? starts_[s + 1].position : anchor, open_);
    }
  }
}

// Whether an event is selected, once those after it have been asked for: one of its pools has room.
bool HistoryGatherer::take(std::uint8_t action) {
  bool room = false;
  for (std::size_t k = 0; k < rule_.pools.size(); ++k)
    if ((action & rule_.pools[k].bit) != 0) room = room_[k]-- > 0 || room;
  return room;
}

void HistoryGatherer::take_range(PositionRange range) {
  for (std::int64_t p = range.end; p > range.begin;) {
    const std::int64_t n = std::min(kWord, p - range.begin);
    p -= n;
    for (std::uint64_t mask = events_with(action_ + p, n, rule_.pool_bits); mask != 0;) {
      if (selected_ == positions_.size()) return;
      const int last = std::bit_width(mask) - 1;
      mask ^= std::uint64_t{1} << last;
      // Without a limit for each pool all have room for as long as the history has.
      if (!rule_.pool_capped || take(action_[p + last])) positions_[selected_++] = p + last;
    }
  }
}

void HistoryGatherer::gather_ranges(const UserEvents& before) {
  if (rule_.pool_capped) room_.assign(rule_.pools.size(), rule_.pool_cap);
  std::int64_t left = rule_.scan_limit;
  for (std::size_t r = before.ranges(); r-- > 0 && left > 0;) {
    const PositionRange range = before.range(r);
    take_range({std::max(range.begin, range.end - left), range.end});
    left -= range.size();
  }
  std::reverse(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(selected_));
}

std::span<const std::int64_t> HistoryGatherer::gather(const UserEvents& before) {
  selected_ = 0;
  if (before.ranges() == 1 && !segments_.empty())
    gather_range(before.last_range().begin, before.last_range().end);
  else
    gather_ranges(before);
  const std::size_t kept = std::min(selected_, static_cast<std::size_t>(rule_.longest));
  return std::span<const std::int64_t>(positions_).subspan(selected_ - kept, kept);
}

}  // namespace hstu
