// The best checkpoint by a metric, and runs that stop when it no longer improves.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/run_fixture.h"

namespace hstu {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// 27 steps; evaluations at steps 3, 6, ...; the newest checkpoint alone is kept beside the best.
class Best : public testing::RunTest {
 protected:
  Best() : RunTest(12, 24) {
    options_.training.batch_size = 8;
    options_.dense.learning_rate = 0.1;  // so that the last evaluation is not the best
    options_.evaluation.every_data_fraction = 0.1;
    options_.evaluation.ranking_k = {1, 3};
    options_.checkpoint = {.every_steps = 4, .every_seconds = 0, .keep = 1, .best = "auc"};
  }
  std::int64_t best_step(const std::string& name) const {
    const auto best = linked_checkpoint(folder_ / name / "checkpoints", kBestLink);
    return best ? best->step : -1;
  }
  // The step of the best eval line; of equal ones the first.
  std::int64_t best_in_log(const std::string& name, const char* key, double sign = 1) const {
    const auto lines = log(name, "eval");
    const auto is_worse = [&](const Json& a, const Json& b) {
      return sign * a.at(key).get<double>() < sign * b.at(key).get<double>();
    };
    return std::max_element(lines.begin(), lines.end(), is_worse)->at("step").get<std::int64_t>();
  }
};

TEST_F(Best, IsKeptBesideTheNewest) {
  const TrainResult result = run("run");
  const std::int64_t best = best_in_log("run", "auc");
  ASSERT_LT(best, result.steps) << "the last one is the best: the test shows nothing";
  EXPECT_EQ(best_step("run"), best);
  EXPECT_EQ(result.best.step, best);
  EXPECT_EQ(
      testing::checkpoint_names(folder_ / "run"),
      (std::vector<std::string>{"best", "current", checkpoint_name(best), checkpoint_name(result.steps)}));
  const Json summary = Json::parse(read_file(folder_ / "run/summary.json"));
  EXPECT_EQ(summary.at("best").at("step"), best);
  EXPECT_EQ(log("run", "eval").back().at("best").at("step"), best);
}

TEST_F(Best, IsTheLeastOfAnEntropy) {
  options_.checkpoint.best = "ne";
  run("run");
  EXPECT_EQ(best_step("run"), best_in_log("run", "ne", -1));
}

TEST_F(Best, MayBeAMetricOfLists) {
  options_.checkpoint.best = "ndcg@3";
  run("run");
  EXPECT_EQ(best_step("run"), best_in_log("run", "ndcg@3"));
}

TEST_F(Best, EvaluatedAgainHasTheValueOfItsTime) {
  const TrainResult result = run("run");
  const RunFolder folder = open_run_folder(folder_ / "run");
  Experiment experiment(read_run_options(folder));
  load_run(Checkpoint(find_checkpoint(folder.checkpoints(), std::string("best"))), experiment);
  EXPECT_EQ(Evaluator(experiment).run()->model.find("auc"), result.best.value);
}

TEST_F(Best, SurvivesInterruptionsInAnyStage) {
  run("whole");
  int n = 0;
  for (const auto& [point, count] : std::vector<std::pair<std::string, int>>{
           {"evaluation.begin", 2}, {"evaluation.end", 1}, {"save.staged", 2}, {"step.end", 14}}) {
    SCOPED_TRACE(point);
    const std::string name = "parts" + std::to_string(n++);
    interrupt_and_resume(name, point, count);
    expect_same_run("whole", name);
    EXPECT_EQ(testing::checkpoint_names(folder_ / name), testing::checkpoint_names(folder_ / "whole"));
    EXPECT_EQ(best_step(name), best_step("whole"));
  }
}

TEST_F(Best, OfAnotherMetricBeginsAnew) {
  run("run");
  options_.checkpoint.best = "ne";
  options_.training.epochs = 2;
  resume("run", -1, {"checkpoint.best", "training.epochs"});
  const Json line = log("run", "eval").back().at("best");
  EXPECT_EQ(line.at("metric"), "ne");
  EXPECT_GE(line.at("step").get<std::int64_t>(), 27);
  EXPECT_EQ(best_step("run"), line.at("step").get<std::int64_t>());
}

TEST_F(Best, GoneWhenTheRunGoesBackIsNotTheBest) {
  options_.checkpoint.keep = 0;
  run("run");
  const std::int64_t best = best_step("run");
  const auto entries = list_checkpoints(folder_ / "run/checkpoints");
  ASSERT_GT(entries.back().step, best);
  fs::remove_all(folder_ / "run/checkpoints" / checkpoint_name(best));
  ::testing::internal::CaptureStderr();
  resume("run", entries.back().step);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("does not exist any more"));
  EXPECT_EQ(best_step("run"), -1);
}

TEST_F(Best, PatienceEndsTheRun) {
  options_.evaluation.patience = 2;
  options_.evaluation.min_delta = 1;  // no improvement is that large
  const TrainResult result = run("run");
  EXPECT_EQ(result.reason, "patience");
  EXPECT_EQ(log("run", "eval").size(), 3u);
  EXPECT_EQ(log("run").back().at("reason"), "patience");
  EXPECT_EQ(log("run").back().at("best").at("stale"), 2);
  EXPECT_EQ(resume("run").reason, "patience") << "it has ended";
  EXPECT_EQ(log("run", "eval").size(), 3u);

  std::atomic<bool> stop = false;
  at("evaluation.batch", 2, [&] { stop = true; });
  run("parts", &stop);
  watch_fault_points({});
  EXPECT_EQ(resume("parts").reason, "patience");
  expect_same_run("run", "parts");
}

// Traps: the best of a save that failed is linked although it does not exist; the one before it is pruned.
TEST_F(Best, ThatCouldNotBeSavedIsNotTheBest) {
  run("whole");
  const std::int64_t first = log("whole", "eval").front().at("step").get<std::int64_t>();
  bool failed = false;
  watch_fault_points([&](std::string_view point) {
    if (point != "save.staged" || failed) return;
    failed = true;
    fail("the disk is full");
  });
  run("run");
  watch_fault_points({});
  ASSERT_EQ(log("run", "checkpoint_failed").front().at("step"), first);
  const std::int64_t best = best_step("run");
  EXPECT_GT(best, first);
  EXPECT_EQ(log("run").back().at("best").at("step"), best);
}

// Trap: an evaluation of 40 samples is the better one than all before it, which were of 130.
TEST_F(Best, BeginsAgainWhereOtherSamplesAreEvaluated) {
  options_.training.max_steps = 12;
  run("run");
  ASSERT_LE(best_step("run"), 12);
  options_.training.max_steps = 0;
  options_.evaluation.ranking_k = {1, 2};
  options_.evaluation.max_samples = 5;
  resume("run", -1, {"evaluation", "training"});
  EXPECT_EQ(log("run", "resume").back().at("evaluations"), "of other samples");
  EXPECT_GT(best_step("run"), 12);
  EXPECT_EQ(log("run", "eval").back().at("best").at("step"), best_step("run"));
}

TEST_F(Best, GoesOnWhereTheSameSamplesAreEvaluated) {
  options_.training.max_steps = 12;
  run("run");
  const std::int64_t best = best_step("run");
  options_.training.max_steps = 13;
  options_.evaluation.ranking_k = {1, 2};
  options_.evaluation.batch_size = 3;
  resume("run", -1, {"evaluation", "training"});
  EXPECT_FALSE(log("run", "resume").back().contains("evaluations"));
  EXPECT_EQ(log("run").back().at("best").at("step"), best);
}

TEST_F(Best, NeedsWhatIsMeasured) {
  const auto complaint = [&] {
    return testing::message_of<UsageError>([&] { check_consistency(options_); });
  };
  options_.evaluation.ranking_k = {1};
  options_.checkpoint.best = "recall@3";
  EXPECT_THAT(complaint(), HasSubstr("set evaluation.ranking_k = [3]"));
  options_.checkpoint.best = "";
  options_.evaluation.patience = 2;
  EXPECT_THAT(complaint(), HasSubstr("evaluation.patience = 2 needs a metric"));
  options_.checkpoint.best = "auc";
  options_.evaluation.every_data_fraction = 0;
  options_.evaluation.holdout = {};
  EXPECT_THAT(complaint(), HasSubstr("nothing is held out"));
}

}  // namespace
}  // namespace hstu
