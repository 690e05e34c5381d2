#include "hstu/batching/history.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/base/random.h"

namespace hstu {
namespace {

using small::expect_error;
using Positions = std::vector<std::int64_t>;

// The rule as in the specification, without optimisations.
Positions expected_history(const std::vector<std::uint8_t>& action, const std::vector<std::uint8_t>& pools,
                           const DataOptions& options, std::int64_t start, std::int64_t anchor) {
  const std::int64_t begin = std::max(start, anchor - options.scan_limit);
  Positions selected;
  const auto select_last = [&](std::uint8_t bits, std::int64_t count) {
    for (std::int64_t p = anchor - 1; p >= begin && count > 0; --p) {
      if ((action[static_cast<std::size_t>(p)] & bits) == 0) continue;
      selected.push_back(p);
      --count;
    }
  };
  if (options.strategy == HistoryStrategy::interleaved) {
    const auto cap =
        std::max<std::int64_t>(1, options.history_length / static_cast<std::int64_t>(pools.size()));
    for (const std::uint8_t pool : pools) select_last(pool, cap);
  } else {
    std::uint8_t all = 0;
    for (const std::uint8_t pool : pools) all |= pool;
    select_last(all, options.history_length);
  }
  std::sort(selected.begin(), selected.end());
  selected.erase(std::unique(selected.begin(), selected.end()), selected.end());
  if (options.max_sequence > 0) {
    const auto budget = options.max_sequence - 1 - static_cast<std::int64_t>(options.contextual.size());
    if (static_cast<std::int64_t>(selected.size()) > budget) {
      selected.erase(selected.begin(), selected.end() - budget);
    }
  }
  return selected;
}

// A gatherer with the running counts it needs.
class Gatherer {
 public:
  Gatherer(const std::vector<std::uint8_t>& action, const DataOptions& options)
      : counts_(small::count_pools(action, small::description().actions)),
        gatherer_(action, {PoolCounts(counts_, 3)}, resolve_history(options, small::description())) {}
  Positions gather(std::int64_t start, std::int64_t anchor) const {
    const auto found = gatherer_.gather(PositionRange{start, anchor});
    return {found.begin(), found.end()};
  }

 private:
  std::vector<std::int64_t> counts_;
  mutable HistoryGatherer gatherer_;
};

TEST(History, EqualsThePlainRuleOnRandomData) {
  std::int64_t tokens = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RandomStream random{.key = seed, .index = 0};
    // Users begin at any position, and half of the logs cross many boundaries of blocks of counts.
    std::vector<std::uint8_t> action(1 + random.below(seed % 2 == 0 ? 300 : 3000));
    const std::uint64_t kinds = 2 + random.below(12);
    std::int64_t quiet = 0;  // ranges without events of a pool give blocks that are skipped
    for (std::uint8_t& a : action) {
      if (seed % 7 == 3 && quiet == 0 && random.below(100) == 0) quiet = 700;
      if (quiet > 0) {
        --quiet;
        continue;
      }
      // All combinations of bits, rare ones and none; bit 8 is no pool, bit 0x80 marks anchors.
      const std::uint64_t kind = random.below(kinds);
      a = static_cast<std::uint8_t>((kind < 4    ? 1u << kind
                                     : kind == 4 ? 3u
                                     : kind == 5 ? 7u
                                                 : 1u) |
                                    (random.below(2) << 7));
    }
    DataOptions options;
    options.strategy = seed % 4 < 2 ? HistoryStrategy::interleaved : HistoryStrategy::last_n;
    options.history_length = 1 + static_cast<std::int64_t>(random.below(seed % 3 == 1 ? 900 : 40));
    options.scan_limit = 1 + static_cast<std::int64_t>(random.below(seed % 3 == 0 ? 30 : 2500));
    options.contextual.resize(random.below(3));
    if (seed % 5 == 0) options.max_sequence = 4 + static_cast<std::int64_t>(random.below(20));
    const Gatherer gatherer(action, options);
    for (int sample = 0; sample < 20; ++sample) {
      const auto anchor = static_cast<std::int64_t>(random.below(action.size()));
      const auto start = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(anchor) + 1));
      const Positions found = gatherer.gather(start, anchor);
      const Positions expected = expected_history(action, {1, 2, 4}, options, start, anchor);
      ASSERT_EQ(found, expected) << "seed " << seed << ", [" << start << ", " << anchor << ")";
      tokens += static_cast<std::int64_t>(expected.size());
    }
  }
  EXPECT_GT(tokens, 10'000);  // the comparison compared something
}

TEST(History, InterleavedKeepsARarePoolThatLastNLoses) {
  std::vector<std::uint8_t> action(3000, small::kGood);
  action[10] = small::kLike;
  DataOptions options;
  options.history_length = 6;
  options.strategy = HistoryStrategy::interleaved;
  EXPECT_EQ(Gatherer(action, options).gather(0, 3000), (Positions{10, 2998, 2999}));
  options.strategy = HistoryStrategy::last_n;
  EXPECT_EQ(Gatherer(action, options).gather(0, 3000), (Positions{2994, 2995, 2996, 2997, 2998, 2999}));
}

TEST(History, TheScanLimitCountsEventsOfEveryKind) {
  std::vector<std::uint8_t> action(25'000, 0);
  action[4999] = action[5000] = small::kGood;
  EXPECT_EQ(Gatherer(action, {}).gather(0, 25'000), (Positions{5000}));  // 20,000 events before the anchor
}

TEST(History, AUserOf27738EventsAmongOthers) {
  // Other users before and after; one of the user's likes is within the scan limit and one before it.
  const std::int64_t start = 1'000, anchor = start + 27'737;
  std::vector<std::uint8_t> action(40'000, small::kLike);
  std::fill(action.begin() + start, action.begin() + start + 27'738, small::kGood);
  action[static_cast<std::size_t>(anchor) - 20'000] = action[static_cast<std::size_t>(anchor) - 20'001] =
      small::kLike;
  action[static_cast<std::size_t>(anchor) - 3] = small::kBad;
  DataOptions options;
  options.history_length = 4086;
  const Positions found = Gatherer(action, options).gather(start, anchor);
  ASSERT_EQ(found.size(), 1362u + 2u);
  EXPECT_EQ(found[0], anchor - 20'000);
  EXPECT_EQ(found[1], anchor - 1363);
  EXPECT_EQ(found.back(), anchor - 1);
}

TEST(History, ResolvesTheReferencesLengths) {
  DataOptions options;
  options.history_length = 4086;
  options.max_sequence = 4096;
  options.contextual.resize(8);
  const HistoryRule rule = resolve_history(options, small::description());
  EXPECT_EQ(rule.pool_cap, 1362);
  EXPECT_EQ(rule.longest, 4086);
  options.history_length = 1;
  EXPECT_EQ(resolve_history(options, small::description()).pool_cap, 1);
}

TEST(History, RefusesOptionsThatMakeNoSense) {
  const auto resolve = [](auto alter) {
    return [alter] {
      DataOptions options;
      alter(options);
      resolve_history(options, small::description());
    };
  };
  expect_error<UsageError>(resolve([](DataOptions& o) { o.history_length = 0; }), {"history_length"});
  expect_error<UsageError>(resolve([](DataOptions& o) { o.scan_limit = 0; }), {"scan_limit"});
  expect_error<UsageError>(resolve([](DataOptions& o) { o.pools = {"goof"}; }), {"goof", "good"});
  expect_error<UsageError>(resolve([](DataOptions& o) { o.pools = {"good", "good"}; }), {"twice"});
  expect_error<UsageError>(resolve([](DataOptions& o) { o.max_sequence = 1; }),
                           {"max_sequence", "at least 2"});
}

}  // namespace
}  // namespace hstu
