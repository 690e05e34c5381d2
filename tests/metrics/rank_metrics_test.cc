#include "hstu/metrics/rank_metrics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "hstu/metrics/item_groups.h"

namespace hstu {
namespace {

TEST(RankMetrics, AreThoseOfTheirFormulas) {
  const std::vector<std::int64_t> ranks{1, 3, 10, 11, 400}, cutoffs{500, 10};
  const Measures m = rank_metrics(ranks, cutoffs);
  EXPECT_EQ(m.find("hr@1"), 0.2);
  EXPECT_EQ(m.find("hr@10"), 0.6);
  EXPECT_EQ(m.find("hr@500"), 1.0);
  EXPECT_DOUBLE_EQ(*m.find("ndcg@1"), 0.2);
  EXPECT_DOUBLE_EQ(*m.find("ndcg@10"), (1 + 0.5 + 1 / std::log2(11.0)) / 5);
  EXPECT_DOUBLE_EQ(*m.find("mrr"), (1 + 1.0 / 3 + 1.0 / 10 + 1.0 / 11 + 1.0 / 400) / 5);
  EXPECT_EQ(m.count("n"), 5);
}

TEST(RankMetrics, DoNotDependOnTheOrderOfTheRanks) {
  RandomStream random{3};
  std::vector<std::int64_t> ranks;
  for (int i = 0; i < 1000; ++i) ranks.push_back(1 + static_cast<std::int64_t>(random.uniform() * 300));
  const Measures before = rank_metrics(ranks);
  std::reverse(ranks.begin(), ranks.end());
  std::swap(ranks[3], ranks[700]);
  EXPECT_EQ(rank_metrics(ranks), before);
}

TEST(RankMetrics, AreUndefinedWithoutRanksAndRefuseRankZero) {
  const std::vector<std::int64_t> none, zero{0};
  const Measures m = rank_metrics(none);
  EXPECT_EQ(m.find("hr@10"), std::nullopt);
  EXPECT_EQ(m.find("mrr"), std::nullopt);
  EXPECT_EQ(m.count("n"), 0);
  EXPECT_THROW(rank_metrics(zero), InternalError);
}

TEST(RankMetrics, AreKnownByTheirNames) {
  ASSERT_NE(find_metric(kRetrievalMetrics, "hr@10"), nullptr);
  ASSERT_NE(find_metric(kRetrievalMetrics, "ndcg@200"), nullptr);
  ASSERT_NE(find_metric(kRetrievalMetrics, "mrr"), nullptr);
  EXPECT_EQ(find_metric(kRetrievalMetrics, "hr@10")->title, "HR@10");
  EXPECT_EQ(find_metric(kRetrievalMetrics, "hr"), nullptr);  // without its cutoff
}

// The collision-corrected evaluation by hand: 8 items, then 4 of which the target is one; and a target that
// is alone at place 2.
TEST(RankMetrics, AreMeansOverTheOrdersOfItemsWithOneTuple) {
  const RankRange ranks[] = {{.first = 9, .count = 4}, {.first = 2}};
  const Measures m = rank_metrics(ranks);
  EXPECT_DOUBLE_EQ(*m.find("hr@10"), (0.5 + 1) / 2);
  EXPECT_DOUBLE_EQ(*m.find("hr@5"), 0.5);
  EXPECT_DOUBLE_EQ(*m.find("hr@50"), 1);
  const double shared = (1 / std::log2(10.0) + 1 / std::log2(11.0)) / 4;
  EXPECT_NEAR(*m.find("ndcg@10"), (shared + 1 / std::log2(3.0)) / 2, 1e-15);
  EXPECT_NEAR(*m.find("mrr"), ((1.0 / 9 + 0.1 + 1.0 / 11 + 1.0 / 12) / 4 + 0.5) / 2, 1e-15);
  EXPECT_EQ(m.count("n"), 2);
}

TEST(ItemGroups, AreThirdsOfTheEvents) {
  // 12 events: 5 of item 7, 3 of 2, 2 of 4, 1 of 1 and of 9, none of 3.
  const std::vector<std::int64_t> ids{1, 2, 3, 4, 7, 9}, counts{1, 3, 0, 2, 5, 1};
  const ItemGroups groups(ids, counts);
  EXPECT_EQ(groups.of(7), ItemGroup::head);
  EXPECT_EQ(groups.of(2), ItemGroup::torso);  // the sixth event is its first
  EXPECT_EQ(groups.of(4), ItemGroup::tail);
  EXPECT_EQ(groups.of(1), ItemGroup::tail);
  EXPECT_EQ(groups.of(3), ItemGroup::tail);   // not in training
  EXPECT_EQ(groups.of(55), ItemGroup::tail);  // unknown
}

TEST(ItemGroups, OfOneItemHaveAHeadAlone) {
  const std::vector<std::int64_t> ids{5}, counts{4};
  EXPECT_EQ(ItemGroups(ids, counts).of(5), ItemGroup::head);
}

}  // namespace
}  // namespace hstu
