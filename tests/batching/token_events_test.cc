// What is kept of a history beside the history of a later request.
#include "hstu/batching/token_events.h"

#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/dataset/manifest.h"

namespace hstu {
namespace {

struct KeptColumns {
  std::vector<std::int64_t> item, time, action_id;
  std::vector<std::uint8_t> action;

  TokenEvents view() const { return {.item = item, .time = time, .action = action, .action_id = action_id}; }
};

KeptColumns columns_of(std::int64_t events, bool has_action_ids) {
  KeptColumns all;
  for (std::int64_t i = 0; i < events; ++i) {
    all.item.push_back(7 * i), all.time.push_back(100 + i);
    all.action.push_back(static_cast<std::uint8_t>(1 + i % 3));
    if (has_action_ids) all.action_id.push_back(i % 5);
  }
  return all;
}

KeptEvents known_columns(const KeptColumns& history) {
  KeptEvents known;
  known.replace(history.view(), 0, std::ssize(history.item));
  return known;
}

// Longer than several of the blocks that are compared together, and not a multiple of them.
constexpr std::int64_t kKeptEvents = 1700;

TEST(KeptEvents, EndAtTheFirstDifferenceInAnyColumn) {
  const KeptColumns kept = columns_of(kKeptEvents, true);
  const KeptEvents known = known_columns(kept);
  EXPECT_EQ(known.equal_events(kept.view(), kKeptEvents), kKeptEvents);
  for (const std::int64_t place : {0L, 1L, 511L, 512L, 513L, 850L, 1024L, 1535L, 1536L, 1698L, 1699L}) {
    const auto i = static_cast<std::size_t>(place);
    KeptColumns item = kept, time = kept, action = kept, action_id = kept;
    item.item[i] ^= std::int64_t{1} << 40;
    time.time[i] += 1;
    action.action[i] ^= 4;
    action_id.action_id[i] += 1;
    for (const KeptColumns* const changed : {&item, &time, &action, &action_id})
      EXPECT_EQ(known.equal_events(changed->view(), kKeptEvents), place);
    // Of two differences the first, whatever their columns.
    item.time.back() += 1, action.item.back() += 1;
    EXPECT_EQ(known.equal_events(item.view(), kKeptEvents), place);
    EXPECT_EQ(known.equal_events(action.view(), kKeptEvents), place);
  }
}

TEST(KeptEvents, HaveTheTimeOfTheEventBehindThem) {
  const KeptColumns history = columns_of(10, false);
  KeptEvents kept;
  kept.replace(history.view(), 0, 8);
  EXPECT_EQ(kept.time_behind(3), history.time[3]);
  EXPECT_EQ(kept.time_behind(8), history.time[8]);
  kept.shorten(5);
  EXPECT_EQ(kept.time_behind(5), history.time[5]);
}

TEST(KeptEvents, AreThoseOfShorterAndLongerHistories) {
  const KeptEvents known = known_columns(columns_of(kKeptEvents, false));
  EXPECT_EQ(known.equal_events(columns_of(kKeptEvents + 40, false).view(), kKeptEvents + 40), kKeptEvents);
  EXPECT_EQ(known.equal_events(columns_of(600, false).view(), 600), 600);
  EXPECT_EQ(known.equal_events(columns_of(600, false).view(), 599), 599);
  EXPECT_EQ(known.equal_events(columns_of(0, false).view(), 0), 0);
  EXPECT_EQ(KeptEvents().equal_events(columns_of(5, false).view(), 5), 0);
}

// A history without its first event has other tokens at all places.
TEST(KeptEvents, AreNoneOfAHistoryThatBeginsLater) {
  const KeptColumns kept = columns_of(kKeptEvents, false);
  KeptColumns later = kept;
  later.item.erase(later.item.begin()), later.time.erase(later.time.begin());
  later.action.erase(later.action.begin());
  EXPECT_EQ(known_columns(kept).equal_events(later.view(), kKeptEvents - 1), 0);
}

TEST(KeptEvents, DoNotReadWhetherAnEventIsRankable) {
  KeptColumns kept = columns_of(kKeptEvents, false);
  const KeptEvents known = known_columns(kept);
  for (std::uint8_t& action : kept.action) action |= kRankableBit;
  EXPECT_EQ(known.equal_events(kept.view(), kKeptEvents), kKeptEvents);
}

TEST(KeptEvents, AreNoneWhereOnlyOneSideHasActionIds) {
  const KeptColumns without = columns_of(20, false), with = columns_of(20, true);
  EXPECT_EQ(known_columns(without).equal_events(with.view(), 20), 0);
  EXPECT_EQ(known_columns(with).equal_events(without.view(), 20), 0);
}

// Beside a comparison of events one by one.
TEST(KeptEvents, FollowAHistoryThatGrowsAndIsCorrected) {
  RandomStream random{3};
  KeptColumns now = columns_of(30, true);
  KeptEvents known;
  KeptColumns kept = columns_of(0, true);
  for (int round = 0; round < 500; ++round) {
    if (random.below(3) == 0) {
      const auto i = random.below(now.item.size());
      std::vector<std::int64_t>* const columns[] = {&now.item, &now.time, &now.action_id};
      if (const std::uint64_t column = random.below(4); column < 3)
        (*columns[column])[i] += 1;
      else
        now.action[i] ^= 1;
    }
    for (std::uint64_t n = random.below(40); n > 0; --n) {
      now.item.push_back(static_cast<std::int64_t>(random.below(9))), now.time.push_back(now.time.back() + 1);
      now.action.push_back(1), now.action_id.push_back(2);
    }
    std::int64_t expected = 0;
    const auto is_equal = [&](std::size_t i) {
      return kept.item[i] == now.item[i] && kept.time[i] == now.time[i] && kept.action[i] == now.action[i] &&
             kept.action_id[i] == now.action_id[i];
    };
    while (expected < std::ssize(kept.item) && expected < std::ssize(now.item) &&
           is_equal(static_cast<std::size_t>(expected)))
      ++expected;
    const std::int64_t equal = known.equal_events(now.view(), std::ssize(now.item));
    ASSERT_EQ(equal, expected) << round;
    const auto count =
        equal +
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(std::ssize(now.item) - equal) + 1));
    known.replace(now.view(), equal, count);
    ASSERT_EQ(known.size(), count);
    kept = now;
    const auto n = static_cast<std::size_t>(count);
    kept.item.resize(n), kept.time.resize(n), kept.action.resize(n), kept.action_id.resize(n);
    if (random.below(8) != 0) continue;
    known.shorten(count / 2);
    kept.item.resize(n / 2), kept.time.resize(n / 2), kept.action.resize(n / 2), kept.action_id.resize(n / 2);
    if (random.below(4) == 0) now = columns_of(30, true);
  }
}

}  // namespace
}  // namespace hstu
