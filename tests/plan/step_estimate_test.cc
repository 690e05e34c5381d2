#include "hstu/plan/step_estimate.h"

#include <tuple>

#include <gtest/gtest.h>

#include "support/kind_options.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

constexpr Interconnect kHost{.link = 450e9};

GpuSpecs h100() {
  return *gpu_specs("NVIDIA H100 80GB HBM3", "9.0");
}

// The share of one of `ranks`, which sum `dense` bytes of gradients and read a table that they divide.
RankPlan plan_of(int ranks, const RankPlan::Work& work, double parts, double dense) {
  RankPlan plan;
  plan.ranks = ranks, plan.batches = plan.samples = 1;
  plan.work = work, plan.parts = parts;
  plan.dense = 2.0 * (ranks - 1) / ranks * dense;
  plan.tables = {{.name = "item", .form = TableRanks::split, .sent = {}}};
  return plan;
}

// As hstu plan counts them: 1,024 samples of DLRMv4 of 2,650 tokens on average, 32 x 4,099 tokens of NVIDIA's
// ranking benchmark, one sample of 65,539.
constexpr RankPlan::Work kDlrmv4{6.8e13, 5.15e13, 1.08e11}, kRanking{3.3e13, 3.09e13, 1.99e10},
    kLong{1.65e13, 2.463e14, 6.2e9};
constexpr double kDlrmv4Dense = 6.1e7, kRankingDense = 2.13e8, kLongDense = 4.5e8;

// docs/performance/ranks.md, one, two and four NVIDIA H100 of one host.
TEST(StepEstimate, IsWithin10PercentOfWhatWasMeasured) {
  const auto expect = [](const RankPlan& plan, double measured) {
    EXPECT_NEAR(estimate_step(plan, h100(), Precision::bf16, kHost).seconds(), measured, 0.1 * measured)
        << plan.ranks << " ranks, " << plan.context_exchanges;
  };
  for (const auto& [ranks, dlrmv4, ranking] :
       {std::tuple(1, 0.291, 0.131), {2, 0.308, 0.142}, {4, 0.318, 0.143}}) {
    expect(plan_of(ranks, kDlrmv4, 6, kDlrmv4Dense), dlrmv4);
    expect(plan_of(ranks, kRanking, 1, kRankingDense), ranking);
  }
  for (const auto& [ranks, dlrmv4, ranking] : {std::tuple(2, 0.155, 0.0716), {4, 0.0793, 0.0385}}) {
    expect(plan_of(ranks, kDlrmv4 * (1.0 / ranks), 6.0 / ranks, kDlrmv4Dense), dlrmv4);
    expect(plan_of(ranks, kRanking * (1.0 / ranks), 1, kRankingDense), ranking);
  }
  expect(plan_of(1, kLong, 1, kLongDense), 0.460);
  for (const auto& [ranks, seconds, bytes] : {std::tuple(2, 0.260, 2.3e9), {4, 0.143, 1.7e9}}) {
    RankPlan shared = plan_of(ranks, kLong * (1.0 / ranks), 1, kLongDense);
    shared.context = bytes, shared.context_exchanges = 32;
    expect(shared, seconds);
  }
}

TEST(StepEstimate, AFasterMemoryHelpsWhatIsNeitherProductNorAttention) {
  const GpuSpecs h200 = *gpu_specs("NVIDIA H200", "9.0");
  const auto model = [](const RankPlan::Work& work, const GpuSpecs& gpu) {
    return estimate_step(plan_of(1, work, 1, 0), gpu, Precision::bf16, kHost).model;
  };
  EXPECT_DOUBLE_EQ(model({.products = 1e12, .attention = 1e12}, h200),
                   model({.products = 1e12, .attention = 1e12}, h100()));
  EXPECT_NEAR(model({.values = 1e9}, h200) / model({.values = 1e9}, h100()), 3352.0 / 4800, 1e-9);
}

TEST(StepEstimate, BytesTakeTheLinkWithinAHostAndTheNetworkBetweenHosts) {
  const StepRates exact{.share_of_bandwidth = 1};
  RankPlan plan;
  plan.ranks = 16;
  plan.batches = plan.samples = 1;
  plan.dense = 15e9;  // 7 for this host, 8 for the other
  const Interconnect net{.link = 10e9, .network = 1e9, .gpus_per_host = 8};
  EXPECT_DOUBLE_EQ(estimate_step(plan, h100(), Precision::bf16, net, exact).dense_bytes, 8);
  plan.ranks = 8;
  EXPECT_DOUBLE_EQ(estimate_step(plan, h100(), Precision::bf16, net, exact).dense_bytes, 1.5);
}

TEST(StepEstimate, StopsScalingWhereTwiceAsManyGiveLittle) {
  std::vector<StepEstimate> steps;
  for (const auto& [ranks, seconds] : {std::pair(1, 8.0), {2, 4.1}, {4, 2.4}, {8, 1.7}, {16, 1.6}})
    steps.push_back({.ranks = ranks, .samples = 100, .model = seconds});
  EXPECT_EQ(stops_scaling(steps), 4);
  steps.resize(3);
  EXPECT_EQ(stops_scaling(steps), 0);
}

TEST(StepEstimate, CoversPowersOfTwoAndTheNumberAskedFor) {
  const Path folder = temporary_folder();
  testing::write_small_dataset(folder / "data");
  const RunOptions options = testing::small_run(folder / "data");
  const std::vector<StepEstimate> steps = estimate_scaling(options, h100(), kHost, 6);
  std::vector<int> ranks;
  ranks.reserve(steps.size());
  for (const StepEstimate& step : steps) ranks.push_back(step.ranks);
  EXPECT_EQ(ranks, (std::vector{1, 2, 4, 6}));
  EXPECT_EQ(steps[0].table_bytes + steps[0].dense_bytes + steps[0].messages, 0);
  EXPECT_GT(steps[3].messages, steps[1].messages);
  EXPECT_LE(steps[1].model, steps[0].model);
  EXPECT_EQ(steps[3].samples, 16) << "the same batch";
}

TEST(StepEstimate, CountsLayersThatAreComputedAgain) {
  const Path folder = temporary_folder();
  testing::write_small_dataset(folder / "data");
  RunOptions options = testing::small_run(folder / "data");
  const RankPlan::Work once = plan_ranks(options, 1).work;
  dlrmv4_of(options).recompute.layer = true;
  const RankPlan::Work again = plan_ranks(options, 1).work;
  EXPECT_DOUBLE_EQ(again.products, 4.0 / 3 * once.products);
  EXPECT_DOUBLE_EQ(again.attention, 4.5 / 3.5 * once.attention);
  EXPECT_GT(again.values, once.values);
}

}  // namespace
}  // namespace hstu
