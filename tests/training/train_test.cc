// Whole runs on a small dataset.
#include "hstu/training/train.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/json_lines.h"
#include "hstu/checkpoint/checkpoint_folder.h"
#include "hstu/training/run_state.h"
#include "hstu/training/step.h"
#include "small_dataset.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

class Training : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = temporary_folder();
    testing::write_small_dataset(folder_ / "dataset");
    options_ = testing::small_run(folder_ / "dataset");
  }
  TrainResult run(const std::string& name, const std::atomic<bool>* stop = nullptr) {
    return train({options_, create_run_folder(folder_ / name, options_), false, "test", stop});
  }
  TrainResult resume(const std::string& name) {
    return train({options_, open_run_folder(folder_ / name), true, "test", nullptr});
  }
  std::vector<Json> log(const std::string& name) const {
    return read_json_lines(folder_ / name / "metrics.jsonl");
  }
  std::vector<Json> log(const std::string& name, const std::string& event) const {
    std::vector<Json> lines;
    for (const Json& line : log(name)) {
      if (line.at("event") == event) lines.push_back(line);
    }
    return lines;
  }
  // The log without what tells time.
  std::vector<std::string> timeless_log(const std::string& name) const {
    std::vector<std::string> lines;
    for (Json line : log(name)) {
      std::vector<std::string> times;
      for (const auto& [key, value] : line.items()) {
        if (key.ends_with("_ms") || key.ends_with("_s")) times.push_back(key);
      }
      for (const std::string& key : times) line.erase(key);
      lines.push_back(line.dump());
    }
    return lines;
  }
  // Every file of a run's newest checkpoint, by name.
  std::map<std::string, std::string> checkpoint_bytes(const std::string& name) const {
    std::map<std::string, std::string> files;
    const Path path = find_checkpoint(folder_ / name / "checkpoints", -1);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files[entry.path().lexically_relative(path)] = read_file(entry.path());
    }
    return files;
  }

  Path folder_;
  RunOptions options_;
};

TEST_F(Training, LearnsWhatTheBaselineCannotKnow) {
  options_.training.epochs = 15;
  const TrainResult result = run("run");
  EXPECT_EQ(result.reason, "completed");
  ASSERT_TRUE(result.evaluation && result.evaluation->model.auc && result.evaluation->baseline.auc);
  EXPECT_GT(*result.evaluation->model.auc, 0.7);
  EXPECT_LT(*result.evaluation->baseline.auc, 0.65);
  EXPECT_EQ(result.evaluation->model.n, result.evaluation->baseline.n);
}

TEST_F(Training, SameSeedGivesTheSameLogAndTheSameCheckpointBytes) {
  run("a");
  run("b");
  EXPECT_EQ(timeless_log("a"), timeless_log("b"));
  EXPECT_EQ(checkpoint_bytes("a"), checkpoint_bytes("b"));
  options_.seed = 2;
  run("c");
  EXPECT_NE(checkpoint_bytes("a"), checkpoint_bytes("c"));
}

TEST_F(Training, EvaluatingACheckpointRepeatsTheEndOfTrainingToTheLastDigit) {
  const TrainResult result = run("run");
  const RunFolder folder = open_run_folder(folder_ / "run");
  Experiment experiment(read_run_options(folder));
  load_run(find_checkpoint(folder.checkpoints(), -1), experiment);
  Evaluator evaluator(experiment);
  const std::int64_t rows = experiment.learner().embeddings.tables().rows_alive();
  const EvaluationResult again = evaluator.run();
  EXPECT_EQ(to_json(again).dump(), to_json(*result.evaluation).dump());
  EXPECT_EQ(experiment.learner().embeddings.tables().rows_alive(), rows) << "evaluation made rows";
}

// Trap: data restarts at the first batch after a resume, optimizer state is lost.
TEST_F(Training, AResumedRunEndsWithTheBytesOfAnUninterruptedOne) {
  options_.training.epochs = 2;
  options_.evaluation.every_windows = 1;
  run("whole");
  const std::atomic<bool> stop = true;  // as if Ctrl-C came during the first step
  const TrainResult first = run("parts", &stop);
  EXPECT_EQ(first.reason, "interrupted");
  EXPECT_EQ(first.steps, 1);
  resume("parts");
  EXPECT_EQ(checkpoint_bytes("whole"), checkpoint_bytes("parts"));
  EXPECT_EQ(log("whole", "train").size(), log("parts", "train").size());
  EXPECT_EQ(log("whole", "eval").back().at("auc"), log("parts", "eval").back().at("auc"));
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
  options_.checkpoint = {3, 2};
  run("run");
  std::vector<std::int64_t> steps;
  for (const auto& entry : list_checkpoints(folder_ / "run" / "checkpoints")) steps.push_back(entry.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{9, 10}));
}

TEST_F(Training, NumbersThatRunAwayStopTheRunNamingStepAndTensor) {
  options_.dense.learning_rate = 1e38;
  options_.dense.max_gradient_norm = 0;
  options_.dense.kind = "sgd";
  try {
    run("run");
    FAIL() << "trained on through infinity";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("step "));
    EXPECT_THAT(error.what(), HasSubstr("first bad tensor"));
  }
}

// Traps: an id outside its table becomes row 0; nobody hears of it.
TEST_F(Training, IdsOutsideTheirTableAreCountedByFeature) {
  options_.features.item_rows = 5;  // ids go to 11
  run("run");
  EXPECT_GT(log("run", "train").back().at("bad_ids").at("item").get<std::int64_t>(), 0);
}

TEST_F(Training, IdsOutsideTheirTableStopTheRunWhenAskedTo) {
  options_.features.item_rows = 5;
  options_.on_bad_id = "error";
  try {
    run("run");
    FAIL() << "a bad id went unnoticed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("item"));
    EXPECT_THAT(error.what(), HasSubstr("user"));
  }
}

TEST_F(Training, NeverWritesOverAnEarlierRun) {
  run("run");
  EXPECT_THROW(run("run"), UsageError);
}

TEST_F(Training, RefusesACheckpointOfAnotherDataset) {
  run("run");
  testing::write_small_dataset(folder_ / "other", 41);
  RunOptions other = options_;
  other.data.path = folder_ / "other";
  Experiment experiment(other);
  EXPECT_THROW(load_run(find_checkpoint(folder_ / "run" / "checkpoints", -1), experiment), Error);
}

// Trap: the loss is a mean of means. One batch of 2 n samples moves the model as its two halves together
// would.
TEST_F(Training, TheLossIsDividedOnceByTheNumberOfSamples) {
  options_.model.input_dropout = options_.model.layer_dropout = 0;
  options_.dense.kind = "sgd";
  options_.dense.max_gradient_norm = 0;
  Experiment experiment(options_);
  const std::vector<std::int64_t> anchors = experiment.anchors().training.first(12);
  const std::span<const std::int64_t> positions(anchors);
  const auto gradient_after = [&](std::int64_t begin, std::int64_t end) {
    Experiment fresh(options_);
    const Batch batch = fresh.batches().build(
        positions.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    train_step(fresh.learner(), batch, 0);
    return fresh.learner().model.parameters().find("head.1.bias").gradient.data<float>()[0];
  };
  const double whole = gradient_after(0, 12), first = gradient_after(0, 4), second = gradient_after(4, 12);
  EXPECT_NEAR(whole, (4 * first + 8 * second) / 12, 1e-6);
}

}  // namespace
}  // namespace hstu
