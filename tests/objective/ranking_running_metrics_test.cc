#include "hstu/objective/ranking_running_metrics.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/checkpoint/checkpoint.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

RankingSamples draw(std::uint64_t seed, int n) {
  RandomStream random{derive_key(seed, "running metrics")};
  RankingSamples samples;
  for (int i = 0; i < n; ++i) {
    const bool positive = random.uniform() < 0.4;
    samples.add(static_cast<float>(random.uniform()), positive, static_cast<std::int64_t>(random.below(5)));
  }
  return samples;
}

Path save(RankingRunningMetrics& metrics, const Path& folder) {
  return save_checkpoint(folder, 1, std::vector{metrics.section()}, {});
}

RankingRunningMetrics load(const Path& checkpoint, std::int64_t window) {
  RankingRunningMetrics metrics(window);
  Checkpoint(checkpoint).load(std::vector{metrics.section()});
  return metrics;
}

// Trap: a resumed run's window is empty at first, or its sums lose their last bits.
TEST(RunningMetrics, GoOnFromACheckpointToTheBit) {
  const Path folder = temporary_folder();
  RankingRunningMetrics whole(100), first(100);
  for (std::uint64_t step = 0; step < 7; ++step) {
    whole.add_step(draw(step, 33));
    if (step < 5) first.add_step(draw(step, 33));
  }
  for (RankingRunningMetrics* metrics : {&whole, &first}) metrics->add_evaluation(draw(90, 50));
  RankingRunningMetrics resumed = load(save(first, folder / "first"), 100);
  for (std::uint64_t step = 5; step < 7; ++step) resumed.add_step(draw(step, 33));
  EXPECT_EQ(resumed.training(), whole.training());
  EXPECT_EQ(resumed.evaluations(), whole.evaluations());
  EXPECT_EQ(read_file(save(resumed, folder / "a") / "metrics.safetensors"),
            read_file(save(whole, folder / "b") / "metrics.safetensors"));
}

TEST(RunningMetrics, ASmallerWindowKeepsTheLatest) {
  const Path folder = temporary_folder();
  RankingRunningMetrics metrics(50);
  metrics.add_step(draw(1, 80));
  const RankingRunningMetrics smaller = load(save(metrics, folder), 20);
  ASSERT_EQ(smaller.window().size(), 20);
  EXPECT_TRUE(
      std::ranges::equal(smaller.window().probabilities(), metrics.window().probabilities().last(20)));
  EXPECT_EQ(smaller.training().count("lifetime_n"), 80);
}

TEST(RunningMetrics, OneSetIsNotAddedToAnother) {
  RankingRunningMetrics metrics(10);
  metrics.add_step(draw(1, 30));
  metrics.add_evaluation(draw(2, 40));
  metrics.add_evaluation(draw(3, 40));
  EXPECT_EQ(metrics.window().size(), 10);
  EXPECT_EQ(metrics.training().count("lifetime_n"), 30);
  EXPECT_EQ(metrics.evaluations().count("lifetime_n"), 80);
}

// Checkpoints of earlier versions have no such section.
TEST(RunningMetrics, BeginEmptyWhereACheckpointHasNone) {
  const Path folder = temporary_folder();
  EXPECT_EQ(load(save_checkpoint(folder, 1, {}, {{"dataset", "d"}}), 10).training().count("lifetime_n"), 0);
}

}  // namespace
}  // namespace hstu
