// A dry step has the bytes of a real one.
#include "hstu/plan/dry_step.h"

#include <gtest/gtest.h>

#include "hstu/device/block_sizes.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/step/outputs.h"
#include "plan/memory_plan_fixture.h"
#include "support/recompute_choices.h"
#include "training/step_on.h"

namespace hstu {
namespace {

using testing::MemoryPlanTest;

// A dry step of `parts` equal parts has the bytes that a real one takes of a pool of its own, and those of
// the last part's rows, which are the tables'.
void expect_the_measured_bytes(const RunOptions& options, std::int64_t parts) {
  TaskData data(options);
  Learner learner(options, std::move(data.task.model), std::move(data.task.objective),
                  make_context(Device::host()));
  Batch batch;
  LayoutScratch scratch;
  learner.model->layout().lay_out(data.samples.build(data.anchors.training.first(24)), scratch, batch);
  batch.supervised = 24 * parts;
  learner.model->parameters().clear_gradients(learner.compute.stream);
  const MemoryFigures before = learner.compute.memory->figures();
  std::int64_t left = parts, rows = 0;
  PartsOf source([&]() -> const Batch* { return left-- > 0 ? &batch : nullptr; });
  begin_step(learner, source, {.draws = Draws(1, 0), .compute = learner.compute}).finish();
  for (const FeatureSpec& feature : learner.model->features())
    rows += counted_bytes(batch.host_tensor(ids_column(feature.name)).size() *
                          learner.model->embedding_dim() * std::int64_t{sizeof(float)});
  EXPECT_EQ(step_memory(*learner.model, *learner.objective, batch, {}, parts),
            learner.compute.memory->figures().peak - before.in_use + rows)
      << parts << " parts";
}

TEST_F(MemoryPlanTest, ADryStepHasTheBytesOfARealOne) {
  for (const Recompute& choice : testing::recompute_choices()) {
    dlrmv4_of(options_).recompute = choice;
    for (const std::int64_t parts : {1, 3}) expect_the_measured_bytes(options_, parts);
  }
}

TEST_F(MemoryPlanTest, ADryStepOfTheSecondModelHasTheBytesOfARealOne) {
  use_ranking_gr();
  for (const Recompute& choice : testing::recompute_choices()) {
    ranking_gr_of(options_).recompute = choice;
    for (const std::int64_t parts : {1, 3}) expect_the_measured_bytes(options_, parts);
  }
}

// A dry evaluation has the bytes of the forward pass of a batch of a real one.
void expect_the_measured_outputs(const RunOptions& options) {
  TaskData data(options);
  Learner learner(options, std::move(data.task.model), std::move(data.task.objective),
                  make_context(Device::host()));
  Batch batch;
  LayoutScratch scratch;
  const std::vector<std::int64_t> positions = data.anchors.evaluation.first(24);
  ASSERT_EQ(positions.size(), 24U);
  learner.model->layout().lay_out(data.evaluation_samples.build(positions), scratch, batch);
  const std::int64_t before = learner.compute.memory->figures().in_use;
  std::int64_t rows = 0;
  for (const FeatureSpec& feature : learner.model->features())
    rows += counted_bytes(batch.host_tensor(ids_column(feature.name)).size() *
                          learner.model->embedding_dim() * std::int64_t{sizeof(float)});
  outputs_of(learner, batch);
  EXPECT_EQ(outputs_memory(*learner.model, batch, {}),
            learner.compute.memory->figures().peak - before + rows);
}

TEST_F(MemoryPlanTest, ADryEvaluationHasTheBytesOfARealOne) {
  options_.evaluation.holdout.fraction = 0.5;
  expect_the_measured_outputs(options_);
  use_ranking_gr();
  expect_the_measured_outputs(options_);
}

// The pool of a step on the GPU has the planned bytes, parameters and optimizer included.
class MemoryPlanOnGpu : public MemoryPlanTest {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    options_.device = "cuda";
    options_.data.options.history_length = 39;
    options_.training.batch_size = 128;
    dlrmv4_of(options_).dim = dlrmv4_of(options_).embedding_dim = 256;
    dlrmv4_of(options_).head_dim = 64;
    dlrmv4_of(options_).heads = 4;
    dlrmv4_of(options_).layers = 4;
    dlrmv4_of(options_).preprocessor_hidden = dlrmv4_of(options_).head_hidden = 64;
    dlrmv4_of(options_).max_sequence = 64;
  }
  void expect_within_a_tenth() {
    Experiment experiment(options_);
    const auto positions = experiment.anchors().training.first(128);
    const Batch batch = testing::batch_of(experiment, positions, 128);
    // Of a model on the host, where a dry step reads the shapes of its parameters.
    RunOptions on_host = options_;
    on_host.device = "host";
    on_host.precision = Precision::fp32;
    const Experiment dry(on_host);
    Model& model = *dry.learner().model;
    if (options_.precision == Precision::bf16) model.move_to(host_context(), DType::bf16);
    const std::int64_t planned =
        step_memory(model, *dry.learner().objective, batch, planned_device(Device::cuda(0)).device);
    const auto dense = 4 * model.parameters().count() * std::int64_t{sizeof(float)};  // with Adam's state
    const std::int64_t peak = testing::step_on(experiment, positions).memory_peak;
    EXPECT_NEAR(static_cast<double>(planned + dense), static_cast<double>(peak),
                0.1 * static_cast<double>(peak));
  }
};

TEST_F(MemoryPlanOnGpu, AStepInFp32HasThePlannedPeak) {
  expect_within_a_tenth();
}

TEST_F(MemoryPlanOnGpu, AStepInBFloat16HasThePlannedPeak) {
  options_.precision = Precision::bf16;
  expect_within_a_tenth();
}

TEST_F(MemoryPlanOnGpu, AStepThatRecomputesHasThePlannedPeak) {
  options_.precision = Precision::bf16;
  dlrmv4_of(options_).recompute = {.norm = true, .gate = true};
  expect_within_a_tenth();
}

}  // namespace
}  // namespace hstu
