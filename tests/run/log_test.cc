#include "hstu/run/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/objective/ranking_running_metrics.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

RunFacts small_facts() {
  RunFacts facts;
  facts.version = "test";
  facts.dataset = "d41d";
  facts.seed = 7;
  facts.tables = {{"item", 100, 8}};
  facts.train_samples = 60;
  facts.metrics = kRankingMetrics;
  return facts;
}

StepResult step_of(double loss) {
  StepResult result;
  result.loss = loss;
  result.samples = 10;
  return result;
}

TEST(RunLog, ATrainLineHasTheMeanLossAndTheCountsOfItsMoment) {
  const Path path = temporary_folder() / "metrics.jsonl";
  RunState state;
  RunLog log(path, small_facts(), {.every_steps = 3}, 0, 60, 0);
  log.begin();
  for (int step = 1; step <= 6; ++step) {
    state.step = step;
    state.samples += 10;
    std::optional<LearnerCounts> counts;
    if (step % 3 == 0)
      counts = LearnerCounts{.table_rows = {{"item", 11 * step}}, .bad_ids = {{"user", step}}};
    log.step(step_of(step), {1, 0}, state, RankingRunningMetrics(10), counts);
  }
  const auto lines = read_json_lines(path);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].at("tables").dump(), R"({"item":{"rows":100,"dim":8}})");
  EXPECT_EQ(lines[0].at("warm_start"), nullptr);
  EXPECT_EQ(lines[1].at("loss"), 2.0);
  EXPECT_EQ(lines[2].at("loss"), 5.0);
  EXPECT_EQ(lines[2].at("samples"), 60);
  EXPECT_EQ(lines[2].at("table_rows").dump(), R"({"item":66})");
  EXPECT_EQ(lines[2].at("bad_ids").dump(), R"({"user":6})");
}

TEST(RunLog, LinesHaveTheMetricsOfTrainingAndOfAllEvaluations) {
  const Path path = temporary_folder() / "metrics.jsonl";
  RankingRunningMetrics metrics(4);
  RankingSamples predictions;
  for (const float p : {0.9f, 0.8f, 0.2f, 0.7f, 0.6f, 0.3f}) predictions.add(p, p > 0.65f, 1);
  metrics.add_step(predictions);
  RankingSamples evaluation;
  evaluation.add(0.25f, true, 1);
  evaluation.add(0.75f, false, 1);
  evaluation.add(0.25f, false, 1);
  metrics.add_evaluation(evaluation);
  RunState state;
  RunLog log(path, small_facts(), {.every_steps = 1}, 0, 60, 0);
  state.step = 1;
  log.step(step_of(1), {1, 0}, state, metrics, LearnerCounts{});
  log.evaluation({}, state, metrics);
  const auto lines = read_json_lines(path);
  EXPECT_EQ(lines[0].at("window_n"), 4);
  EXPECT_EQ(lines[0].at("window_auc"), 1.0);
  EXPECT_EQ(lines[0].at("window_accuracy"), 0.75);
  EXPECT_EQ(lines[0].at("lifetime_n"), 6);
  EXPECT_DOUBLE_EQ(lines[0].at("lifetime_accuracy").get<double>(), 5.0 / 6);
  EXPECT_EQ(lines[1].at("lifetime_n"), 3);
  EXPECT_EQ(lines[1].at("lifetime_auc"), 0.25);
}

TEST(RunLog, TimeNeverGoesBack) {
  const Path path = temporary_folder() / "metrics.jsonl";
  write_file(path, "{\"event\":\"run\",\"time_s\":4e12}\n");  // written with a clock that was ahead
  RunLog log(path, small_facts(), {}, 0, 60, 0);
  log.resume({}, {}, std::nullopt, false);
  EXPECT_GE(read_json_lines(path).back().at("time_s").get<double>(), 4e12);
}

}  // namespace
}  // namespace hstu
