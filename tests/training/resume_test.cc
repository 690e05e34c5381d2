// Runs that are interrupted, resumed, resumed from an earlier checkpoint or under another configuration.
#include "hstu/run/resume.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/metrics/ranking.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;

// 27 steps in 3 windows, some ids outside their table; saves at steps 4, 8, ... and evaluations at 6, 12, ...
class Resume : public testing::RunTest {
 protected:
  Resume() : RunTest(12, 24) {
    options_.training.batch_size = 8;
    options_.features.item_rows = 10;  // the largest id is 11
    options_.evaluation.every_data_fraction = 0.2;
    options_.checkpoint = {.every_steps = 4, .every_seconds = 0, .keep = 0};
    options_.metrics.every_steps = 3;
  }
  Path checkpoint(const std::string& name, std::int64_t step) const {
    return folder_ / name / "checkpoints" / checkpoint_name(step);
  }
};

// Traps: data restarts at the first batch after a resume; optimizer state and counters are lost.
TEST_F(Resume, ASignalInAnyStageChangesNothingOfTheRun) {
  run("whole");
  EXPECT_GT(log("whole", "train").back().at("bad_ids").at("item").get<std::int64_t>(), 0);
  int n = 0;
  for (const auto& [point, count] : std::vector<std::pair<std::string, int>>{{"open", 1},
                                                                             {"step.middle", 5},
                                                                             {"save.file", 3},
                                                                             {"evaluation.begin", 1},
                                                                             {"evaluation.batch", 2},
                                                                             {"step.end", 8}}) {
    SCOPED_TRACE(point);
    const std::string name = "parts" + std::to_string(n++);
    interrupt_and_resume(name, point, count);
    expect_same_run("whole", name);
    EXPECT_EQ(log(name, "resume").size(), 1u);
  }
}

// Traps: the cursor counts steps of the old size, so that samples are left out or trained twice; the last
// step is that of a run which had the new size from the start.
TEST_F(Resume, StepsOfAnotherSizeTrainWhatIsLeft) {
  options_.metrics.every_steps = 1;
  const std::int64_t samples = run("whole").samples;
  std::int64_t end_of_window = 0;
  for (const Json& line : log("whole", "train"))
    if (line.at("window") == 0) end_of_window = line.at("step").get<std::int64_t>();
  const std::vector<std::string> allowed{"training"};
  const RunOptions before = options_;
  for (const std::int64_t batch : {4, 16}) {
    for (const std::int64_t step : {std::int64_t{4}, end_of_window}) {
      SCOPED_TRACE(fmt::format("batches of {} behind step {}", batch, step));
      const std::string name = fmt::format("batch_{}_{}", batch, step);
      options_ = before;
      options_.training.max_steps = step;
      run(name);
      options_.training.max_steps = 0;
      options_.training.batch_size = batch;
      const TrainResult result = resume(name, -1, allowed);
      EXPECT_EQ(result.reason, "completed");
      EXPECT_EQ(result.samples, samples);
    }
  }
  options_ = before;
  options_.training.max_steps = 5;
  run("inside");
  options_.training.max_steps = 0;
  options_.training.accumulate = 2;
  EXPECT_THAT(message_of<UsageError>([&] { resume("inside", -1, allowed); }), HasSubstr("no multiple"));
}

TEST_F(Resume, AnInterruptedEvaluationIsMadeAfterTheResume) {
  std::atomic<bool> stop = false;
  at("evaluation.batch", 1, [&] { stop = true; });
  const TrainResult first = run("run", &stop);
  watch_fault_points({});
  EXPECT_EQ(log("run", "eval").size(), 0u);
  EXPECT_EQ(log("run", "checkpoint").back().at("step"), first.steps) << "the step was saved";
  resume("run");
  EXPECT_EQ(log("run", "eval").front().at("step"), first.steps);
}

// Trap: a checkpoint of the step of an evaluation is written before it, and the evaluation is lost.
TEST_F(Resume, ASaveAtTheStepOfAnEvaluationHasIt) {
  options_.checkpoint.every_steps = options_.checkpoint.every_windows = 0;
  options_.checkpoint.every_window_batches = 1;
  run("run");
  const auto lines = log("run");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].at("event") == "eval") {
      ASSERT_LT(i + 1, lines.size());
      EXPECT_EQ(lines[i + 1].at("event"), "checkpoint");
      EXPECT_EQ(lines[i + 1].at("step"), lines[i].at("step"));
    }
  }
  for (const Json& line : log("run", "eval")) {
    const nlohmann::json state = Checkpoint(checkpoint("run", line.at("step").get<std::int64_t>())).state();
    EXPECT_EQ(state.at("run").at("evaluated_at").get<std::int64_t>(), line.at("step").get<std::int64_t>());
  }
}

TEST_F(Resume, GoesBackToAnEarlierStepAndPutsLaterStateAside) {
  run("whole");
  run("back");
  const auto steps_before = list_checkpoints(folder_ / "back/checkpoints");
  const std::string log_before = read_file(folder_ / "back/metrics.jsonl");
  resume("back", 8);
  expect_same_run("whole", "back");
  const Path aside = folder_ / "back/abandoned/1";
  EXPECT_EQ(read_file(aside / "metrics.jsonl"), log_before);
  for (const auto& entry : steps_before) {
    EXPECT_EQ(fs::exists(aside / entry.path.filename()), entry.step > 8) << entry.step;
  }
  EXPECT_EQ(fs::canonical(folder_ / "back/checkpoints/current").filename(),
            list_checkpoints(folder_ / "back/checkpoints").back().path.filename());
  EXPECT_THAT(message_of<UsageError>([&] { resume("back", 7); }), HasSubstr("4, 8, 12"));
}

TEST_F(Resume, CutShortInGoingBackTheRunIsStillWhole) {
  run("whole");
  run("back");
  abandon_later(open_run_folder(folder_ / "back"), 16);  // then a power failure
  resume("back");
  expect_same_run("whole", "back");
}

TEST_F(Resume, AnotherConfigurationIsRefusedNamingEveryKeyThatDiffers) {
  run("run");
  const std::string log_before = read_file(folder_ / "run/metrics.jsonl");
  options_.training.epochs = 2;
  options_.dense.learning_rate = 0.02;
  EXPECT_THAT(
      message_of<UsageError>([&] { resume("run"); }),
      AllOf(HasSubstr("training.epochs: 1 there, 2 here"),
            HasSubstr("dense_optimizer.learning_rate: 0.01 there, 0.02 here"), Not(HasSubstr("seed"))));
  EXPECT_THAT(message_of<UsageError>([&] { resume("run", -1, {"training.epochs"}); }),
              AllOf(HasSubstr("learning_rate"), Not(HasSubstr("epochs"))));
  EXPECT_EQ(read_file(folder_ / "run/metrics.jsonl"), log_before) << "a refusal changes nothing";
}

TEST_F(Resume, WhatMayChangeDoesAndIsInTheLog) {
  const std::int64_t steps = run("run").steps;
  options_.training.epochs = 2;
  EXPECT_EQ(resume("run", -1, {"training.epochs"}).steps, 2 * steps);
  EXPECT_EQ(log("run", "resume").back().at("changed").dump(),
            R"({"training.epochs":{"before":"1","after":"2"}})");
  EXPECT_EQ(read_run_options(open_run_folder(folder_ / "run")).training.epochs, 2);
}

// Trap: config.toml of the run is edited by hand, and the run continues without notice.
TEST_F(Resume, AnEditedConfigurationIsNoticed) {
  run("run");
  options_.seed = 2;
  write_file(folder_ / "run/config.toml", to_toml(options_));
  EXPECT_THAT(message_of<UsageError>([&] { resume("run"); }), HasSubstr("seed: 1 there, 2 here"));
}

TEST_F(Resume, ARunThatHasEndedIsLeftAsItIs) {
  const TrainResult first = run("run");
  const std::string log_before = read_file(folder_ / "run/metrics.jsonl");
  const TrainResult again = resume("run");
  EXPECT_EQ(again.reason, "completed");
  EXPECT_EQ(to_json(*again.evaluation, kRankingMetrics).dump(),
            to_json(*first.evaluation, kRankingMetrics).dump());
  EXPECT_EQ(read_file(folder_ / "run/metrics.jsonl"), log_before);
}

TEST_F(Resume, ARunThatReachedItsTargetDoesNotTrainOn) {
  options_.evaluation.target_auc = 0.01;
  const std::int64_t steps = run("run").steps;
  fs::remove(folder_ / "run/summary.json");
  auto lines = read_file(folder_ / "run/metrics.jsonl");
  lines.resize(lines.rfind('\n', lines.size() - 2) + 1);  // as if killed before the line of the end
  write_file(folder_ / "run/metrics.jsonl", lines);
  const TrainResult again = resume("run");
  EXPECT_EQ(again.reason, "target");
  EXPECT_EQ(again.steps, steps);
  EXPECT_EQ(log("run").back().at("reason"), "target");
  EXPECT_TRUE(fs::exists(folder_ / "run/summary.json"));
}

TEST_F(Resume, ARunWithoutACheckpointBeginsAnew) {
  run("whole");
  create_run_folder(folder_ / "parts", options_);
  std::ofstream(folder_ / "parts/metrics.jsonl")
      << "{\"event\":\"run\"}\n{\"event\":\"train\",\"step\":3}\n{\"ev";
  resume("parts");
  expect_same_run("whole", "parts");
}

// Trap: checkpoints were moved away, and the run silently starts from the beginning.
TEST_F(Resume, ARunWhoseCheckpointsAreGoneIsRefused) {
  options_.training.max_steps = 9;
  run("run");
  fs::remove_all(folder_ / "run/checkpoints");
  const std::string log_before = read_file(folder_ / "run/metrics.jsonl");
  EXPECT_THAT(message_of<UsageError>([&] { resume("run"); }), HasSubstr("put them back"));
  EXPECT_EQ(read_file(folder_ / "run/metrics.jsonl"), log_before);
}

TEST_F(Resume, ALogOfAnotherRunIsRefusedAndAMissingOneBegunAnew) {
  options_.training.max_steps = 9;
  run("run");
  write_file(folder_ / "run/metrics.jsonl", "{\"event\":\"run\"}\n");
  EXPECT_THAT(message_of([&] { resume("run"); }), AllOf(HasSubstr("metrics.jsonl"), HasSubstr("step 9")));
  fs::remove(folder_ / "run/metrics.jsonl");
  resume("run");
  EXPECT_EQ(log("run").front().at("event"), "run");
  EXPECT_EQ(log("run").back().at("event"), "end");
}

TEST_F(Resume, TimeOfTrainingIsThatOfAllProcesses) {
  interrupt_and_resume("run", "step.end", 20);
  const double interrupted = log("run", "checkpoint")[5].at("training_s");  // of step 20
  EXPECT_GT(log("run", "end").back().at("training_s").get<double>(), interrupted);
  const Json summary = Json::parse(read_file(folder_ / "run/summary.json"));
  EXPECT_DOUBLE_EQ(summary.at("samples_per_s").get<double>() * summary.at("training_s").get<double>(),
                   summary.at("samples").get<double>());
}

}  // namespace
}  // namespace hstu
