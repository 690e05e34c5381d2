#include "hstu/benchmark/stage_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/benchmark/layer_needs.h"
#include "hstu/benchmark/step_benchmark.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StageTime range(std::string_view name, int depth, std::ptrdiff_t outer, double begin, double end,
                std::int64_t bytes = 0) {
  return {.name = name, .depth = depth, .outer = outer, .begin_ms = begin, .end_ms = end, .bytes = bytes};
}

// A step: lookup 0 to 1, forward 1 to 5, backward 5 to 13, update 13 to 14.
const std::vector<StageTime> kStep{
    range("lookup", 0, -1, 0, 1),         range("embedding", 1, 0, 0, 1, 100),
    range("forward", 0, -1, 1, 5),        range("gate", 1, 2, 1, 2, 1 << 20),
    range("linear", 2, 3, 1, 1.5),        range("gate", 1, 2, 3, 5, 1 << 20),
    range("backward", 0, -1, 5, 13),      range("gate", 1, 6, 5, 12, 1 << 21),
    range("update", 0, -1, 13, 14, 1000), range("embedding", 1, 8, 13, 14, 1000)};

TEST(StageTable, SumsStagesByPassAndWhatIsOutsideOfThem) {
  std::vector<StageSums> sums;
  add_stages(kStep, sums);
  add_stages(kStep, sums);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[0].stage, "embedding");
  EXPECT_EQ(sums[0].forward_ms, 2);
  EXPECT_EQ(sums[0].update_ms, 2);
  EXPECT_EQ(sums[0].bytes, 2200);
  EXPECT_EQ(sums[1].stage, "gate");
  EXPECT_EQ(sums[1].forward_ms, 6);
  EXPECT_EQ(sums[1].backward_ms, 14);
  EXPECT_EQ(sums[2].stage, "other");
  EXPECT_EQ(sums[2].forward_ms, 2);
  EXPECT_EQ(sums[2].backward_ms, 2);
}

TEST(StageTable, HasMeansSharesAndRates) {
  std::vector<StageSums> sums;
  add_stages(kStep, sums);
  add_stages(kStep, sums);
  GpuSpecs specs;
  specs.memory_bandwidth = 1 << 30;
  const Json rows = stages_json(sums, 2, {{"gate", {.flops = 1e9, .least_bytes = 1 << 20}}}, 1e12, specs);
  ASSERT_EQ(rows.size(), 3u);
  const Json& gate = rows[1];
  EXPECT_EQ(gate.at("forward_ms"), 3);
  EXPECT_EQ(gate.at("backward_ms"), 7);
  EXPECT_DOUBLE_EQ(gate.at("share_of_time").get<double>(), 10.0 / 14);
  EXPECT_DOUBLE_EQ(gate.at("tflops").get<double>(), 0.1);  // 1 GFLOP in 10 ms
  EXPECT_DOUBLE_EQ(gate.at("share_of_peak").get<double>(), 0.1);
  EXPECT_DOUBLE_EQ(gate.at("moved_gib").get<double>(), 4.0 / 1024);
  EXPECT_DOUBLE_EQ(gate.at("least_gib").get<double>(), 1.0 / 1024);
  EXPECT_DOUBLE_EQ(gate.at("share_of_bandwidth").get<double>(), 4.0 / 1024 / 0.01);
  EXPECT_TRUE(rows[0].at("tflops").is_null());
  EXPECT_THAT(stage_table(rows), HasSubstr("gate       3.000       7.000"));
}

TEST(StageTable, HasNoSharesOfAnUnknownPeak) {
  std::vector<StageSums> sums;
  add_stages(kStep, sums);
  const Json rows =
      stages_json(sums, 1, {{"gate", {.flops = 1e9, .least_bytes = 0}}}, std::nullopt, std::nullopt);
  for (const Json& row : rows) {
    EXPECT_TRUE(row.at("share_of_peak").is_null());
    EXPECT_TRUE(row.at("share_of_bandwidth").is_null());
  }
  EXPECT_FALSE(rows[1].at("tflops").is_null());
}

TEST(LayerNeeds, CountEachOperandOnceInEachPass) {
  NeedsByStage needs;
  const HstuLayerConfig layer{.dim = 10, .heads = 2, .head_dim = 3};
  const LayerFlops flops{.uvqk = 100, .attention = 8, .projection = 10};
  add_layer_needs(layer, 7, 2, 2, flops, needs);
  EXPECT_EQ(needs.at("norm_uvqk").flops, 300);
  EXPECT_EQ(needs.at("attention").flops, 28);
  EXPECT_EQ(needs.at("projection").flops, 30);
  const int x = 7 * 10, u = 2 * 6, vk = 7 * 12, w = 10 * 24;
  EXPECT_EQ(needs.at("norm_uvqk").least_bytes,
            2 * (x + w + 2 * u + vk) + 2 * (x + w + 2 * u + vk + x) + 4 * w);
  EXPECT_EQ(needs.at("attention").least_bytes, 2 * (u + vk + u) + 2 * (u + vk + u + u + vk));
  EXPECT_EQ(needs.at("gate").least_bytes, 2 * (2 * u + 3 * u) + 2 * (2 * u + 3 * u + 2 * u));
  const int cat = 3 * u, y = 2 * 10, v = 18 * 10;
  EXPECT_EQ(needs.at("projection").least_bytes, 2 * (cat + v + y + y) + 2 * (cat + v + y + cat) + 4 * v);
}

// Every stage of the model is named: nothing that takes time is left for "other".
TEST(StepBenchmark, NamesTheStagesOfAStep) {
  const Json result = benchmark_step({.steps = 1, .warmup = 0});
  std::vector<std::string> stages;
  for (const Json& row : result.at("stages")) {
    stages.push_back(row.at("stage"));
    if (row.at("least_gib").is_null() || row.at("moved_gib").is_null()) continue;
    const double moved = row.at("moved_gib"), least = row.at("least_gib");
    EXPECT_GE(moved, least) << row.dump();
    // U's columns alone, of those of U, V, Q and K.
    if (row.at("stage") == "gate") {
      EXPECT_EQ(moved, least);
    } else if (row.at("stage") == "attention") {
      EXPECT_LT(moved, 1.4 * least);
    }
  }
  EXPECT_THAT(stages, ElementsAre("embedding", "preprocessor", "norm_uvqk", "attention", "gate", "projection",
                                  "head", "loss", "optimizer", "predictions", "other"));
  EXPECT_GT(result.at("tflops").get<double>(), result.at("computed_tflops").get<double>());
}

}  // namespace
}  // namespace hstu
