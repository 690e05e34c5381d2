// Runs whose dataset is extended between two starts.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

// Days of ten events of each user, in windows of a day.
class ExtendedData : public testing::RunTest {
 protected:
  ExtendedData() : RunTest(40, 10) {
    options_.features.item_rows = 12;
    options_.features.context[0].rows = 40;
    options_.evaluation.holdout.fraction = 0;
  }

  void add_day(std::int64_t day) {
    testing::extend_small_dataset(folder_ / "dataset", 10 * day, 10 * day + 10);
  }

  // What a model has learnt: everything but the description of the run.
  std::map<std::string, std::string> learnt(const std::string& name) const {
    auto files = testing::newest_checkpoint(folder_ / name);
    std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
    return files;
  }

  // The positions that a run on these data trains, in order.
  std::vector<std::int64_t> schedule(const std::vector<std::string>& earlier) const {
    const Experiment experiment(options_,
                                std::make_unique<TaskData>(options_, Dataset(folder_ / "dataset"), earlier));
    BatchSchedule schedule = experiment.schedule({});
    std::vector<std::int64_t> positions;
    while (const auto job = schedule.next())
      positions.insert(positions.end(), job->positions.begin(), job->positions.end());
    return positions;
  }

  std::string dataset_id() const { return read_manifest(folder_ / "dataset").id; }
};

TEST_F(ExtendedData, ContinuingDayByDayEqualsOneRunOverAllDays) {
  run("daily");
  const std::int64_t steps = std::ssize(log("daily", "checkpoint"));
  EXPECT_GT(steps, 0);
  for (const std::int64_t day : {1, 2}) {
    add_day(day);
    EXPECT_EQ(resume("daily").reason, "completed");
  }
  const TrainResult whole = run("whole");
  EXPECT_EQ(whole.samples, 40 * 30);
  EXPECT_EQ(learnt("daily"), learnt("whole"));
  EXPECT_EQ(resume("daily").steps, whole.steps) << "nothing is left to train";
}

// They are those of the first stage, which is over. Trap: the last step is that of a run with all of them.
TEST_F(ExtendedData, MoreEpochsAfterTheFirstStageTrainNothing) {
  run("run");
  add_day(1);
  EXPECT_EQ(resume("run").reason, "completed");
  add_day(2);
  options_.training.epochs = 3;
  const TrainResult result = resume("run", -1, {"training.epochs"});
  EXPECT_EQ(result.reason, "completed");
  EXPECT_EQ(result.samples, 40 * 30);
  EXPECT_EQ(log("run", "resume").back().at("data").at("samples_left"), 400);
}

TEST_F(ExtendedData, SaysWhatIsNew) {
  run("run");
  const std::string before = dataset_id();
  add_day(1);
  ::testing::internal::CaptureStderr();
  resume("run");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the dataset has been extended: 400 samples are left to train"));
  const std::vector<Json> lines = log("run", "resume");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].at("data"), (Json{{"from", before}, {"to", dataset_id()}, {"samples_left", 400}}));
}

TEST_F(ExtendedData, InterruptionsChangeNothing) {
  for (const std::string name : {"calm", "torn"}) run(name);
  add_day(1);
  resume("calm");
  for (const int steps : {3, 5}) interrupt("torn", "step.end", steps, true);
  resume("torn");
  expect_same_run("calm", "torn");
  add_day(2);
  resume("calm");
  resume("torn");
  expect_same_run("calm", "torn");
}

TEST_F(ExtendedData, WhatTheHoldoutReleasesIsTrainedFirstAndEverythingOnce) {
  options_.evaluation.holdout.fraction = 0.2;
  const std::vector<std::int64_t> first = schedule({});
  const std::string before = dataset_id();
  add_day(1);
  const std::vector<std::int64_t> both = schedule({before});
  ASSERT_GT(both.size(), first.size());
  EXPECT_EQ(std::vector(both.begin(), both.begin() + std::ssize(first)), first);
  const Dataset dataset(folder_ / "dataset");
  const auto is_old = [&](std::int64_t position) { return position < dataset.segments()[1].first(); };
  const auto rest = both.begin() + std::ssize(first);
  const std::int64_t released = std::count_if(rest, both.end(), is_old);
  EXPECT_EQ(std::ssize(first) + released, 400);
  EXPECT_TRUE(std::all_of(rest, rest + released, is_old));
  std::vector<std::int64_t> sorted = both;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end()) << "trained twice";
  EXPECT_EQ(std::ssize(both), 640) << "a fifth of 800 is held out";
}

TEST_F(ExtendedData, TheBestEvaluationIsOneOfTheDataOfNow) {
  options_.evaluation.holdout.fraction = 0.2;
  options_.checkpoint.best = "auc";
  options_.evaluation.patience = 1;
  options_.evaluation.every_windows = 1;
  const TrainResult first = run("run");
  add_day(1);
  const TrainResult second = resume("run");
  EXPECT_GT(second.steps, first.steps) << "patience of the day before ended the run";
  EXPECT_GT(second.best.step, first.steps);
}

TEST_F(ExtendedData, AnEvaluationOfTheRunStaysTheSame) {
  options_.evaluation.holdout.fraction = 0.2;
  const TrainResult result = run("run");
  const Checkpoint checkpoint(find_checkpoint(folder_ / "run/checkpoints", -1));
  add_day(1);
  Experiment experiment(options_, open_data_of(options_, checkpoint));
  load_run(checkpoint, experiment);
  EXPECT_EQ(Evaluator(experiment).run()->model, result.evaluation->model);
}

TEST_F(ExtendedData, ALaterStageIsTrainedOnce) {
  options_.training.epochs = 3;
  EXPECT_EQ(run("run").samples, 3 * 400);
  add_day(1);
  EXPECT_EQ(resume("run").samples, 3 * 400 + 400);
}

}  // namespace
}  // namespace hstu
