#include "hstu/batching/history.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {
namespace {

constexpr std::int64_t kLanes = 8;  // events looked at together: the bytes of one word

constexpr std::uint64_t broadcast(std::uint8_t bits) {
  return bits * 0x0101010101010101u;
}

std::uint8_t find_pool(const std::string& pool, const Manifest& manifest) {
  std::vector<std::string> known;
  for (const ActionBit& action : manifest.actions) {
    if (action.name == pool) return action.bit;
    known.push_back(action.name);
  }
  fail_usage("pools: the dataset has no action \"{}\"{}", pool, suggestion(pool, known));
}

void expect_positive(const char* name, std::int64_t value) {
  if (value < 1) fail_usage("{}: expected at least 1, found {}", name, value);
}

}  // namespace

HistoryStrategy parse_history_strategy(const std::string& name) {
  if (name == "interleaved") return HistoryStrategy::interleaved;
  if (name == "last_n") return HistoryStrategy::last_n;
  const std::vector<std::string> known{"interleaved", "last_n"};
  fail_usage("unknown history strategy \"{}\"{}", name, suggestion(name, known));
}

HistoryRule resolve_history(const DataOptions& options, const Manifest& manifest) {
  expect_positive("history_length", options.history_length);
  expect_positive("scan_limit", options.scan_limit);
  HistoryRule rule;
  const std::vector<std::string>& pools = options.pools.empty() ? manifest.pools : options.pools;
  for (const std::string& pool : pools) {
    const std::uint8_t bit = find_pool(pool, manifest);
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

std::span<const std::int64_t> HistoryGatherer::gather(std::int64_t user_start, std::int64_t anchor) {
  const std::uint8_t* const action = action_.data();
  const std::int64_t begin = std::max(user_start, anchor - rule_.scan_limit);
  std::uint8_t open = rule_.pool_bits;  // pools that have room
  std::array<std::int64_t, 8> kept{};   // events kept, by the pool's bit
  std::int64_t free = rule_.longest;    // positions_[free, longest) is filled

  const auto keep = [&](std::int64_t position, std::uint8_t pools) {
    positions_[static_cast<std::size_t>(--free)] = position;
    if (!rule_.pool_capped) return;
    for (unsigned bits = pools; bits != 0; bits &= bits - 1) {
      const int pool = std::countr_zero(bits);
      if (++kept[static_cast<std::size_t>(pool)] == rule_.pool_cap) {
        open = static_cast<std::uint8_t>(open & ~(1u << pool));
      }
    }
  };

  // Backwards, eight events a word: once the frequent pools are full, words without an event of a rare one
  // are skipped by a single comparison.
  std::int64_t end = anchor;
  for (; end - begin >= kLanes && open != 0 && free > 0; end -= kLanes) {
    std::uint64_t word = 0;
    std::memcpy(&word, action + end - kLanes, sizeof word);
    word &= broadcast(open);
    while (word != 0 && free > 0) {
      const int lane = 7 - std::countl_zero(word) / 8;
      keep(end - kLanes + lane, static_cast<std::uint8_t>(word >> (8 * lane)));
      word &= broadcast(open) & ~(std::uint64_t{0xff} << (8 * lane));
    }
  }
  for (; end > begin && open != 0 && free > 0; --end) {
    const auto pools = static_cast<std::uint8_t>(action[end - 1] & open);
    if (pools != 0) keep(end - 1, pools);
  }
  return std::span<const std::int64_t>(positions_).subspan(static_cast<std::size_t>(free));
}

}  // namespace hstu
