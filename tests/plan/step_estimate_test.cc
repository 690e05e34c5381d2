#include "hstu/plan/step_estimate.h"

#include <gtest/gtest.h>

#include "support/kind_options.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

constexpr Interconnect kH200Host{.link = 450e9};

GpuSpecs h200() {
  return *gpu_specs("NVIDIA H200", "9.0");
}

// One GPU's share of DLRMv4 at the reference's sizes, as docs/performance/gpu.md and ranks.md have it:
// 1,024 samples of 2,700 tokens in six parts, 559 TFLOP/s in 308 ms; 0.3 GB of ids, rows and gradients.
RankPlan dlrmv4(int ranks) {
  RankPlan plan;
  plan.ranks = ranks;
  plan.batches = 1;
  plan.samples = 1024 * ranks;
  plan.flops = 559e12 * 0.308;
  plan.parts = 6;
  plan.dim = 512;
  RankPlan::Table table{.name = "item", .form = TableRanks::split, .distinct_ids = 70'000, .sent = {}};
  if (ranks > 1) table.sent = {.rows = 0.15e9, .row_gradients = 0.15e9};
  plan.tables = {table};
  plan.dense = ranks > 1 ? 1e8 : 0;
  return plan;
}

TEST(StepEstimate, IsWithin15PercentOfWhatWasMeasured) {
  const StepEstimate one = estimate_step(dlrmv4(1), h200(), Precision::bf16, kH200Host);
  const StepEstimate two = estimate_step(dlrmv4(2), h200(), Precision::bf16, kH200Host);
  EXPECT_NEAR(one.samples_per_s(), 3'280, 0.15 * 3'280);  // 3,230 to 3,330, and 3,101 beside the two
  EXPECT_NEAR(one.samples_per_s(), 3'101, 0.15 * 3'101);
  EXPECT_NEAR(two.samples_per_s(), 5'953, 0.15 * 5'953);
  EXPECT_NEAR(two.samples_per_s() / one.samples_per_s(), 1.92, 0.05);
  RankPlan ranking;  // 32 x 4,099 tokens: 472 TFLOP/s in 135 to 139 ms
  ranking.batches = 1;
  ranking.samples = 32;
  ranking.flops = 472e12 * 0.137;
  EXPECT_NEAR(estimate_step(ranking, h200(), Precision::bf16, kH200Host).seconds(), 0.137, 0.15 * 0.137);
}

TEST(StepEstimate, BytesTakeTheLinkWithinAHostAndTheNetworkBetweenHosts) {
  const StepRates exact{.share_of_bandwidth = 1};
  RankPlan plan;
  plan.ranks = 16;
  plan.batches = plan.samples = 1;
  plan.dense = 15e9;  // 7 for this host, 8 for the other
  const Interconnect net{.link = 10e9, .network = 1e9, .gpus_per_host = 8};
  EXPECT_DOUBLE_EQ(estimate_step(plan, h200(), Precision::bf16, net, exact).dense_bytes, 8);
  plan.ranks = 8;
  EXPECT_DOUBLE_EQ(estimate_step(plan, h200(), Precision::bf16, net, exact).dense_bytes, 1.5);
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
  const std::vector<StepEstimate> steps = estimate_scaling(options, h200(), kH200Host, 6);
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
  const double once = estimate_scaling(options, h200(), kH200Host, 1)[0].model;
  dlrmv4_of(options).recompute.layer = true;
  const double again = estimate_scaling(options, h200(), kH200Host, 1)[0].model;
  EXPECT_GT(again, 1.2 * once) << "about a quarter of a step is its forward pass";
  EXPECT_LT(again, 1.4 * once);
}

}  // namespace
}  // namespace hstu
