// Training with the model on a GPU: the host's numbers up to rounding, and the same bytes every time.
#include <cmath>

#include <gtest/gtest.h>

#include "support/kind_options.h"
#include "training/gpu_activity.h"
#include "training/run_fixture.h"
#include "training/step_on.h"

namespace hstu {
namespace {

using testing::step_on;

class TrainingOnGpu : public testing::RunTest {
 protected:
  explicit TrainingOnGpu(std::int64_t events_per_user = 24) : RunTest(12, events_per_user) {
    options_.training.batch_size = 8;
    options_.features.item_rows = 10;  // the largest id is 11
    options_.evaluation.every_data_fraction = 0.2;
    options_.checkpoint = {.every_steps = 4, .every_seconds = 0, .keep = 0};
    options_.device = "cuda";
  }
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

// Calls compare(step, result of a, result of b) for six steps of eight samples each.
template <typename Compare>
void for_each_step(Experiment& a, Experiment& b, const Compare& compare) {
  const auto positions = a.anchors().training.first(48);
  for (std::int64_t step = 0; step < 6; ++step) {
    const std::span batch = std::span(positions).subspan(static_cast<std::size_t>(8 * step), 8);
    const StepResult of_a = step_on(a, batch, step), of_b = step_on(b, batch, step);
    compare(step, of_a, of_b);
  }
}

void expect_same_step(std::int64_t step, const StepResult& expected, const StepResult& found) {
  EXPECT_NEAR(found.loss, expected.loss, 1e-5 * expected.loss) << step;
  EXPECT_NEAR(found.gradient_norm, expected.gradient_norm, 1e-4 * expected.gradient_norm) << step;
}

TEST_F(TrainingOnGpu, StepsAreTheHosts) {
  RunOptions on_host = options_;
  on_host.device = "host";
  Experiment host(on_host), gpu(options_);
  for_each_step(host, gpu, [](std::int64_t step, const StepResult& expected, const StepResult& found) {
    expect_same_step(step, expected, found);
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_NEAR(testing::predictions_of(found).probabilities()[i],
                  testing::predictions_of(expected).probabilities()[i], 1e-5);
  });
}

TEST_F(TrainingOnGpu, StepsOfTheSecondModelAreTheHosts) {
  ranking_gr_of(options_).dim = 24;  // unlike the rows
  ranking_gr_of(options_).embedding_dim = 8;
  ranking_gr_of(options_).head_dim = 8;
  ranking_gr_of(options_).head_hidden = {16};
  for (const RankingHead head : {RankingHead::multi_task, RankingHead::multi_class}) {
    ranking_gr_of(options_).head = head;
    ranking_gr_of(options_).labels = {"positive", "negative"};
    if (head == RankingHead::multi_class) ranking_gr_of(options_).positive_classes = {"positive"};
    ranking_gr_of(options_).candidates = head == RankingHead::multi_class ? 2 : 0;
    RunOptions on_host = options_;
    on_host.device = "host";
    Experiment host(on_host), gpu(options_);
    for_each_step(host, gpu, expect_same_step);
  }
}

TEST_F(TrainingOnGpu, TwoRunsAndAResumedOneHaveTheSameBytes) {
  run("whole");
  EXPECT_EQ(log("whole", "run").front().at("device"), "cuda:0");
  run("again");
  expect_same_run("whole", "again");
  interrupt_and_resume("parts", "step.middle", 5);
  expect_same_run("whole", "parts");
}

class LongSamplesOnGpu : public TrainingOnGpu {
 protected:
  LongSamplesOnGpu() : TrainingOnGpu(700) {
    options_.precision = Precision::bf16;
    options_.data.options.history_length = 650;
    dlrmv4_of(options_).heads = 4;
    dlrmv4_of(options_).head_dim = 64;
    dlrmv4_of(options_).positions = dlrmv4_of(options_).max_sequence = 1400;
    options_.training.batch_size = 32;
    options_.training.first_window = 45;  // of histories of 450 and more events
    options_.training.max_steps = 12;
    options_.evaluation.holdout.fraction = 0.02;
    options_.evaluation.every_data_fraction = 0;
  }
};

// Trap: the bytes of a run depend on the order in which tiles of attention were computed.
TEST_F(LongSamplesOnGpu, TwoRunsAndAResumedOneHaveTheSameBytesInBFloat16) {
  run("whole");
  run("again");
  expect_same_run("whole", "again");
  interrupt_and_resume("parts", "step.middle", 6);
  expect_same_run("whole", "parts");
}

// A cache for the rows of a step moves rows and changes none; parts of a batch make it grow within a step.
TEST_F(TrainingOnGpu, TablesOnTheHostHaveTheBytesOfTablesOnTheGpu) {
  options_.training.micro_batch_tokens = 40;
  run("on the GPU");
  options_.tables.place = TableTier::host;
  run("on the host");
  ASSERT_GE(testing::table_files(folder_ / "on the GPU").size(), 2u);
  EXPECT_EQ(testing::table_files(folder_ / "on the host"), testing::table_files(folder_ / "on the GPU"));
  EXPECT_TRUE(log("on the host", "train").back().at("caches").contains("item"));
  interrupt_and_resume("parts", "step.middle", 5);
  expect_same_run("on the host", "parts");
}

// The next step begins before the results of this one are read, except where something asks for them: a line
// of the log, a checkpoint, an evaluation.
TEST_F(TrainingOnGpu, StepsThatBeginAheadHaveTheBytesOfStepsOneByOne) {
  const auto order_of = [&](const std::string& name) {
    std::string order;
    watch_fault_points([&](std::string_view point) {
      if (point == "step.begin" || point == "step.end") order += point == "step.begin" ? 'b' : 'e';
    });
    run(name);
    watch_fault_points({});
    return order.substr(0, 8);
  };
  options_.metrics.every_steps = 100;
  EXPECT_EQ(order_of("ahead"), "bbebebee") << "a checkpoint follows the fourth step";
  options_.metrics.every_steps = 1;
  EXPECT_EQ(order_of("one by one"), "bebebebe");
  const auto tensors_of = [&](const char* name) {
    auto files = testing::newest_checkpoint(folder_ / name);
    std::erase_if(files, [](const auto& file) { return file.first.ends_with("manifest.json"); });
    return files;
  };
  EXPECT_GE(tensors_of("ahead").size(), 4u);
  EXPECT_EQ(tensors_of("ahead"), tensors_of("one by one"));
}

// The loss in bfloat16 is that of fp32 up to its own error, and its training is as repeatable.
TEST_F(TrainingOnGpu, BFloat16FollowsFp32) {
  RunOptions in_fp32 = options_;
  options_.precision = Precision::bf16;
  Experiment exact(in_fp32), rounded(options_);
  for_each_step(exact, rounded, [](std::int64_t step, const StepResult& expected, const StepResult& found) {
    EXPECT_NEAR(found.loss, expected.loss, 0.01 * expected.loss) << step;
  });
  run("whole");
  run("again");
  expect_same_run("whole", "again");
}

// A step copies the logits to the host. A kernel writes the loss, the norm of the gradients and whether all
// is finite to page-locked memory.
TEST_F(TrainingOnGpu, AStepHasNoHiddenCopyAndNeverWaitsForTheWholeDevice) {
  Experiment gpu(options_);
  const auto positions = gpu.anchors().training.first(48);
  const auto step = [&](std::int64_t s) {
    step_on(gpu, std::span(positions).subspan(static_cast<std::size_t>(8 * s), 8), s);
  };
  for (std::int64_t s = 0; s < 3; ++s) step(s);
  std::string why;
  const auto activity = testing::gpu_activity_of([&] { step(3); }, why);
  if (!activity) GTEST_SKIP() << why;
  EXPECT_GT(activity->kernels, 50);
  EXPECT_EQ(activity->device_synchronisations, 0);
  EXPECT_EQ(activity->to_host.count, 1);
  EXPECT_EQ(activity->to_host.bytes, 8 * 4);
  EXPECT_LE(activity->to_gpu.count, 2) << "the batch, and the gradient of the loss";
}

TEST_F(TrainingOnGpu, AnOverflowStopsBeforeAnythingIsSaved) {
  options_.dense.learning_rate = 1e30;
  options_.dense.config.kind = DenseOptimizerKind::sgd;
  EXPECT_THROW(run("run"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run" / "checkpoints" / "current"));
}

}  // namespace
}  // namespace hstu
