#include "hstu/plan/group_choice.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "support/kind_options.h"
#include "training/small_dataset.h"

namespace hstu {
namespace {

TEST(GroupChoice, IsTheFastestOfThoseThatFit) {
  const auto best = [](const std::vector<GroupChoice>& choices) { return best_of(choices).tensor; };
  const GroupChoice whole{.tensor = 1, .step = {.model = 2}, .memory = 90},
      shared{.tensor = 2, .step = {.model = 2, .heads = 0.1}, .memory = 50};
  GroupChoice large = whole, small = shared;
  EXPECT_EQ(best({whole, shared}), 1);
  large.fits = false;
  EXPECT_EQ(best({large, shared}), 2);
  small.fits = false;
  EXPECT_EQ(best({large, small}), 2);  // needs less
}

TEST(GroupChoice, CountsWhatRanksSendAndHave) {
  const Path folder = temporary_folder();
  testing::write_small_dataset(folder / "data");
  RunOptions options = testing::small_run(folder / "data");
  dlrmv4_of(options).heads = 4;
  const GpuSpecs gpu = *gpu_specs("NVIDIA H200", "9.0");
  const auto choices =
      group_choices(options, planned_device(Device::host()), gpu, {.link = gpu.link_bandwidth}, 8);
  ASSERT_EQ(choices.size(), 3);
  EXPECT_EQ(best_of(choices).tensor, 1);
  EXPECT_EQ(choices[0].step.heads, 0);
  EXPECT_GT(choices[1].step.heads, 0);
  EXPECT_GT(choices[2].step.heads, choices[1].step.heads);
  EXPECT_EQ(choices[2].tensor, 4);

  // What of parameters belongs to heads, of which a rank then has a quarter.
  const TaskData data(options);
  std::int64_t of_heads = 0;
  for (const Parameter* p : data.task.model->parameters().all())
    if (p->divisible.blocks > 0) of_heads += p->value.size();
  EXPECT_GT(of_heads, 0);
  const MemoryPlan whole = plan_memory(options, data, {}, 8);
  options.ranks.tensor = 4;
  const MemoryPlan divided = plan_memory(options, data, {}, 8);
  EXPECT_EQ(whole.parameters - divided.parameters, 3 * of_heads);  // of 4 bytes each, three quarters
  EXPECT_EQ(data.task.model->parameters().find("layers.0.output_norm.weight").value.size(), 16);  // as before
  const RankPlan plan = plan_ranks(options, data, 8, 1);
  const double layers = static_cast<double>(dlrmv4_of(options).layers);
  EXPECT_DOUBLE_EQ(plan.heads, layers * plan.tokens * (4 * 3 * 8 * 4 + 2 * 3 * 4 * 8));
}

// Batches of one sample, which one of two ranks computes alone, or both.
TEST(GroupChoice, TakesTheContextThatMakesWorkEven) {
  const Path folder = temporary_folder();
  testing::write_small_dataset(folder / "data");
  RunOptions options = testing::small_run(folder / "data");
  options.training.batch_size = 1;
  const PlannedDevice host = planned_device(Device::host());
  const auto chosen = [&](int ranks) { return with_context(options, host, ranks); };
  EXPECT_EQ(chosen(2).why, "") << "1 is a number";
  options.ranks.context = 0, options.ranks.context_above = 1;
  EXPECT_EQ(chosen(1).options.ranks.context, 1);
  EXPECT_EQ(chosen(2).options.ranks.context, 2);
  EXPECT_EQ(chosen(4).options.ranks.context, 4) << "more ranks than heads";
  EXPECT_EQ(chosen(2).why, "ranks.context: 2 (the rank with the most work has 0.50 of what it has with 1)\n");
  dlrmv4_of(options).heads = 4;
  const GpuSpecs gpu = *gpu_specs("NVIDIA H200", "9.0");
  std::vector<std::array<int, 2>> groups;
  for (const GroupChoice& choice : group_choices(options, host, gpu, {.link = gpu.link_bandwidth}, 8)) {
    groups.push_back({choice.tensor, choice.context});
    EXPECT_EQ(choice.step.context > 0, choice.context > 1);
  }
  EXPECT_EQ(groups, (std::vector<std::array<int, 2>>{
                        {1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1}, {2, 2}, {2, 4}, {4, 1}, {4, 2}}));
  options.training.batch_size = 64;
  EXPECT_EQ(chosen(2).options.ranks.context, 1) << "as even without";
  options.ranks.context_above = 100;
  EXPECT_EQ(
      chosen(2).why,
      "ranks.context: 1 (no sample of the first batches has more than ranks.context_above = 100 tokens, "
      "or ranks cannot share it)\n");
}

}  // namespace
}  // namespace hstu
