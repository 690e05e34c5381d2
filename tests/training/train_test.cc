// Whole runs on a small dataset.
#include "hstu/training/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/run/state.h"
#include "hstu/step/step.h"
#include "sanitizers.h"
#include "support/kind_options.h"
#include "training/run_fixture.h"
#include "training/step_on.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

using testing::newest_checkpoint;

class Training : public testing::RunTest {};

TEST_F(Training, LearnsWhatTheBaselineCannotKnow) {
  // Enough epochs, and no dropout: with fewer, rounding decides how soon a run leaves its plateau.
  options_.training.epochs = kSanitized ? 2 : 40;
  dlrmv4_of(options_).input_dropout = dlrmv4_of(options_).layer_dropout = 0;
  const TrainResult result = run("run");
  EXPECT_EQ(result.reason, "completed");
  ASSERT_TRUE(result.evaluation && result.evaluation->model.find("auc") &&
              result.evaluation->baseline.find("auc"));
  EXPECT_GT(*result.evaluation->model.find("auc"), kSanitized ? 0.4 : 0.7);  // of few epochs
  EXPECT_LT(*result.evaluation->baseline.find("auc"), 0.65);
  EXPECT_EQ(result.evaluation->model.count("n"), result.evaluation->baseline.count("n"));
}

TEST_F(Training, SameSeedGivesTheSameLogAndTheSameCheckpointBytes) {
  run("a");
  run("b");
  EXPECT_EQ(testing::timeless_log(folder_ / "a"), testing::timeless_log(folder_ / "b"));
  EXPECT_EQ(newest_checkpoint(folder_ / "a"), newest_checkpoint(folder_ / "b"));
  options_.seed = 2;
  run("c");
  EXPECT_NE(newest_checkpoint(folder_ / "a"), newest_checkpoint(folder_ / "c"));
}

TEST_F(Training, EvaluatingACheckpointRepeatsTheEndOfTrainingToTheLastDigit) {
  const TrainResult result = run("run");
  const RunFolder folder = open_run_folder(folder_ / "run");
  Experiment experiment(read_run_options(folder));
  load_run(Checkpoint(find_checkpoint(folder.checkpoints(), -1)), experiment);
  Evaluator evaluator(experiment);
  const std::int64_t rows = experiment.learner().tables.rows_alive();
  const EvaluationResult again = *evaluator.run();
  EXPECT_EQ(to_json(again, result.metrics).dump(), to_json(*result.evaluation, result.metrics).dump());
  EXPECT_EQ(experiment.learner().tables.rows_alive(), rows) << "evaluation made rows";
}

TEST_F(Training, StopsAtMaxStepsAndCountsEverySample) {
  options_.training.max_steps = 7;
  const TrainResult result = run("run");
  EXPECT_EQ(result.steps, 7);
  EXPECT_LE(result.samples, 7 * 16);
  EXPECT_EQ(log("run").back().at("reason"), "completed");
}

TEST_F(Training, StopsWhenTheTargetIsReached) {
  options_.evaluation.target_auc = 0.01;
  options_.evaluation.every_windows = 1;
  EXPECT_EQ(run("run").reason, "target");
}

TEST_F(Training, SavesAtItsCadenceAndKeepsTheNewest) {
  options_.training.max_steps = 10;
  options_.checkpoint.every_steps = 3;
  run("run");
  std::vector<std::int64_t> steps;
  for (const auto& entry : list_checkpoints(folder_ / "run" / "checkpoints")) steps.push_back(entry.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{9, 10}));
}

// Traps: an id outside its table becomes row 0; such ids are not reported.
TEST_F(Training, IdsOutsideTheirTableAreCountedByFeature) {
  options_.features.item_rows = 5;  // the largest id is 11
  options_.evaluation.at_start = true;
  run("run");
  EXPECT_GT(log("run", "train").back().at("bad_ids").at("item").get<std::int64_t>(), 0);
  // The counts of one evaluation, for any number of evaluations.
  const auto evaluations = log("run", "eval");
  ASSERT_GE(evaluations.size(), 2u);
  EXPECT_GT(evaluations.front().at("bad_ids").at("item").get<std::int64_t>(), 0);
  EXPECT_EQ(evaluations.front().at("bad_ids"), evaluations.back().at("bad_ids"));
}

TEST_F(Training, IdsOutsideTheirTableStopTheRunWhenAskedTo) {
  options_.features.item_rows = 5;
  options_.on_bad_id = OnBadId::error;
  try {
    run("run");
    FAIL() << "a bad id went unnoticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("item"));
    EXPECT_THAT(error.what(), HasSubstr("user"));
  }
}

// With dropout: the predictions come from the step's own forward pass, not from a second one.
TEST_F(Training, PredictionsOfAStepAreThoseOfItsLoss) {
  Experiment experiment(options_);
  const StepResult result = testing::step_on(experiment, experiment.anchors().training.first(12));
  const RankingMetrics metrics = testing::predictions_of(result).metrics();
  EXPECT_EQ(metrics.n, 12);
  EXPECT_NEAR(metrics.log_loss.value(), result.loss, 1e-6);
}

TEST_F(Training, LinesHaveMetricsOfTrainingAndOfAllEvaluations) {
  options_.metrics.window_samples = 40;
  options_.evaluation.every_windows = 1;
  const TrainResult result = run("run");
  const Json last = log("run", "train").back();
  EXPECT_EQ(last.at("window_n"), 40);
  EXPECT_EQ(last.at("lifetime_n"), last.at("samples"));
  for (const char* key : {"window_auc", "window_ne", "window_gauc", "lifetime_auc", "lifetime_ne"})
    EXPECT_TRUE(last.at(key).is_number()) << key;
  const auto evaluations = log("run", "eval");
  ASSERT_GT(evaluations.size(), 1u);
  EXPECT_EQ(evaluations[0].at("lifetime_auc"), evaluations[0].at("auc_binned"));
  EXPECT_EQ(evaluations.back().at("lifetime_n").get<std::size_t>(),
            evaluations.size() * static_cast<std::size_t>(result.evaluation->model.count("n")));
  EXPECT_NE(evaluations.back().at("lifetime_auc"), evaluations.back().at("auc_binned"));
}

TEST_F(Training, NeverWritesOverAnEarlierRun) {
  run("run");
  EXPECT_THROW(run("run"), UsageError);
}

// Trap: the loss is a mean of means. One batch of 2 n samples must give the same update as its two halves
// together.
TEST_F(Training, TheLossIsDividedOnceByTheNumberOfSamples) {
  dlrmv4_of(options_).input_dropout = dlrmv4_of(options_).layer_dropout = 0;
  options_.dense.config.kind = DenseOptimizerKind::sgd;
  options_.dense.max_gradient_norm = 0;
  Experiment experiment(options_);
  const std::vector<std::int64_t> anchors = experiment.anchors().training.first(12);
  const std::span<const std::int64_t> positions(anchors);
  const auto gradient_after = [&](std::int64_t begin, std::int64_t end) {
    Experiment fresh(options_);
    testing::step_on(
        fresh, positions.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    return fresh.learner().model->parameters().find("head.1.bias").gradient.data<float>()[0];
  };
  const double whole = gradient_after(0, 12), first = gradient_after(0, 4), second = gradient_after(4, 12);
  EXPECT_NEAR(whole, (4 * first + 8 * second) / 12, 1e-6);
}

}  // namespace
}  // namespace hstu
