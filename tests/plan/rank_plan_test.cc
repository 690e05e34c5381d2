#include "hstu/plan/rank_plan.h"

#include <gtest/gtest.h>

#include "training/small_dataset.h"

namespace hstu {
namespace {

class RankPlanTest : public ::testing::Test {
 protected:
  RankPlanTest() {
    testing::write_small_dataset(folder_ / "data");
    options_ = testing::small_run(folder_ / "data");
    options_.data.shuffle_fraction = 0;
  }
  Path folder_ = temporary_folder();
  RunOptions options_;
};

TEST_F(RankPlanTest, OneRankSendsNothingAndIsEven) {
  const RankPlan plan = plan_ranks(options_, 1);
  EXPECT_EQ(plan.bytes(), 0);
  EXPECT_EQ(plan.imbalance, 1);
  EXPECT_EQ(plan.imbalance_of_slices, 1);
  EXPECT_EQ(plan.samples, 960);  // those that are not held out
}

TEST_F(RankPlanTest, BalancedWorkIsMoreEvenThanSlices) {
  const RankPlan plan = plan_ranks(options_, 4);
  EXPECT_GE(plan.imbalance, 1);
  EXPECT_LT(plan.imbalance, plan.imbalance_of_slices);
  options_.training.balance = Balance::none;
  EXPECT_EQ(plan_ranks(options_, 4).imbalance, plan.imbalance_of_slices);
}

// Batches of one sample on two ranks: one rank has the ids of a whole sample, the other none.
TEST_F(RankPlanTest, CountsTheBytesThatLeaveARank) {
  options_.training.batch_size = 1;
  options_.tables.ranks = TableRanks::split;
  const RankPlan plan = plan_ranks(options_, 2);
  const RankPlan::Traffic split = plan.sent();
  EXPECT_EQ(plan.most_ids_over_mean, 2);
  EXPECT_EQ(split.rows, 4 * split.ids) << "a row of 8 floats for each id of 8 bytes";
  EXPECT_EQ(split.row_gradients, split.ids + split.rows);
  RunOptions accumulated = options_;
  accumulated.training.accumulate = 5;
  const RankPlan of_accumulated = plan_ranks(accumulated, 2);
  EXPECT_EQ(of_accumulated.batches, plan.batches);
  EXPECT_EQ(of_accumulated.sent().rows, split.rows);
  options_.tables.ranks = TableRanks::copy;
  const RankPlan of_copies = plan_ranks(options_, 2);
  const RankPlan::Traffic copy = of_copies.sent();
  EXPECT_EQ(copy.ids + copy.rows, 0);
  EXPECT_EQ(copy.row_gradients, 2 * split.row_gradients);
  EXPECT_EQ(of_copies.dense, plan.dense);
}

// Batches of one sample: of two ranks that share it, each has half of the work.
TEST_F(RankPlanTest, LongSamplesAreTheWorkOfTheirGroup) {
  options_.training.batch_size = 1;
  const RankPlan alone = plan_ranks(options_, 2);
  EXPECT_EQ(alone.imbalance, 2);
  EXPECT_EQ(alone.context, 0);
  options_.ranks.context = 2, options_.ranks.context_above = 1;
  const RankPlan shared = plan_ranks(options_, 2);
  EXPECT_EQ(shared.imbalance, 1);
  EXPECT_NEAR(shared.work.flops(), alone.work.flops() / 2, 1e-9 * alone.work.flops());
  EXPECT_EQ(alone.context_exchanges, 0);
  EXPECT_GT(shared.context_exchanges, 0);
  EXPECT_EQ(shared.bytes(), alone.bytes() + shared.context);
  options_.precision = Precision::bf16;
  EXPECT_EQ(plan_ranks(options_, 2).context, shared.context / 2);
  dlrmv4_of(options_).heads /= 2,
      dlrmv4_of(options_).head_dim *= 2;  // one head: keys and values for those that see them
  EXPECT_LT(plan_ranks(options_, 2).context, shared.context / 2);
  options_.ranks.context_above = 1000;
  EXPECT_EQ(plan_ranks(options_, 2).imbalance, 2);
}

TEST_F(RankPlanTest, ShowsHowRanksShareEachTable) {
  options_.tables.by_name["item"].ranks = "table";
  const RankPlan plan = plan_ranks(options_, 2);
  EXPECT_EQ(plan.tables[0].form, TableRanks::table);
  EXPECT_EQ(plan.tables[1].form, TableRanks::copy) << "small";
  EXPECT_GT(plan.tables[0].distinct_ids, 1);
  EXPECT_LE(plan.tables[0].distinct_ids, 12);
  const std::string text = tables_text(plan, plan_memory(options_, {}, 2));
  EXPECT_NE(text.find("12 rows"), std::string::npos) << text;
}

}  // namespace
}  // namespace hstu
