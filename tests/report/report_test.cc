#include "hstu/report/report.h"

#include <gmock/gmock.h>

#include "hstu/base/error.h"
#include "hstu/metrics/ranking.h"
#include "hstu/report/comparison.h"
#include "hstu/report/stage_drawing.h"
#include "hstu/report/table_rows.h"
#include "hstu/report/work_drawing.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

std::vector<Json> lines_of_a_run() {
  return {{{"event", "run"},
           {"time_s", 1000.0},
           {"seed", 7},
           {"tables", {{"item", {{"rows", 5000}, {"dim", 16}}}}}},
          {{"event", "train"},
           {"step", 10},
           {"samples", 320},
           {"loss", 0.7},
           {"table_rows", {{"item", 1024}}},
           {"bad_ids", {{"artist", 3}}},
           {"forward_ms", 20.0},
           {"backward_ms", 50.0},
           {"time_s", 1060.0}},
          {{"event", "eval"},
           {"step", 10},
           {"samples", 320},
           {"auc", 0.71},
           {"baseline_auc", 0.65},
           {"eval_s", 2.0}},
          {{"event", "checkpoint"}, {"step", 10}, {"samples", 320}, {"save_s", 0.25}},
          {{"event", "resume"}, {"step", 10}, {"version", "0.1.0"}, {"changed", Json::object()}},
          {{"event", "train"},
           {"step", 20},
           {"samples", 640},
           {"loss", 0.6},
           {"window_auc", 0.625},
           {"lifetime_ne", 0.9},
           {"table_rows", {{"item", 2048}}},
           {"bad_ids", {{"artist", 4}}},
           {"forward_ms", 30.0},
           {"backward_ms", 50.0},
           {"time_s", 1120.0}}};
}

TEST(RunMetrics, CurvesOverSamplesAndTime) {
  const RunMetrics metrics(lines_of_a_run());
  const Series loss = metrics.curve("train", "loss", "loss");
  EXPECT_THAT(loss.x, ElementsAre(320, 640));
  EXPECT_THAT(loss.y, ElementsAre(0.7, 0.6));
  EXPECT_THAT(metrics.curve_in_time("train", "bad_ids.artist", "ids").x, ElementsAre(1, 2));  // minutes
  EXPECT_THAT(metrics.curve("train", "nothing", "n").x, ElementsAre());
}

TEST(RunMetrics, SecondsByStage) {
  const RunMetrics metrics(lines_of_a_run());
  EXPECT_THAT(metrics.stage_seconds(), ElementsAre(Pair("evaluation", 2.0), Pair("backward", 1.0),
                                                   Pair("forward", 0.5), Pair("saving", 0.25)));
}

TEST(RunMetrics, AMeanStepByStageInItsOrder) {
  EXPECT_THAT(RunMetrics(lines_of_a_run()).step_ms(),
              ElementsAre(Pair("data wait", 0.0), Pair("row lookup", 0.0), Pair("forward", 25.0),
                          Pair("backward", 50.0), Pair("update", 0.0)));
  EXPECT_THAT(RunMetrics(std::vector<Json>{}).step_ms(), ElementsAre());
}

TEST(RunMetrics, ALineWithoutAnEvent) {
  EXPECT_THROW(RunMetrics(std::vector<Json>{Json{{"step", 1}}}), Error);
}

TEST(Report, IsCompleteInItself) {
  const std::string page = report_html({.title = "run <1>",
                                        .metrics = RunMetrics(lines_of_a_run()),
                                        .specs = kRankingMetrics,
                                        .config = "seed = 7 # <b>"});
  for (const char* part : {"http", "<script", "<link", "url(", "@import", "src="})
    EXPECT_THAT(page, Not(HasSubstr(part)));
  EXPECT_THAT(page, HasSubstr("<title>run &lt;1&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("seed = 7 # &lt;b&gt;"));
}

TEST(Report, ShowsWhatTheRunSaid) {
  const std::string page = report_html(
      {.title = "run", .metrics = RunMetrics(lines_of_a_run()), .specs = kRankingMetrics, .config = ""});
  EXPECT_THAT(page, HasSubstr("<b>0.7100</b><small>running rates 0.6500</small>"));
  EXPECT_THAT(page, HasSubstr("<td>item</td><td>2,048</td><td>5,000</td><td>16</td><td>128.0 KiB</td>"));
  EXPECT_THAT(page, HasSubstr("<td>artist</td><td>4</td>"));
  EXPECT_THAT(page, HasSubstr("not ended"));
  EXPECT_THAT(page, HasSubstr("<h2>Restarts</h2>"));
}

TEST(Report, HasNoNumberForTheRowsOfIdsThatAreHashes) {
  EXPECT_EQ(most_rows_text(9'222'676'756'076'468'274), "one for each id");
  EXPECT_EQ(most_rows_text(50'000'000'000), "50,000,000,000");
}

TEST(Report, DrawsTheMetricsOfTraining) {
  const std::string page = report_html(
      {.title = "run", .metrics = RunMetrics(lines_of_a_run()), .specs = kRankingMetrics, .config = ""});
  EXPECT_THAT(page, HasSubstr("<h2>AUC</h2>"));
  EXPECT_THAT(page, HasSubstr("latest training samples: 0.625 at 640"));
  EXPECT_THAT(page, HasSubstr("all training samples: 0.9 at 640"));
}

TEST(Report, DrawsLossGaucAndListsOfEvaluations) {
  std::vector<Json> lines = lines_of_a_run();
  lines.push_back({{"event", "eval"},
                   {"step", 20},
                   {"samples", 640},
                   {"log_loss", 0.55},
                   {"gauc", 0.66},
                   {"gauc_mean", 0.64},
                   {"ndcg@10", 0.31}});
  const std::string page =
      report_html({.title = "run", .metrics = RunMetrics(lines), .specs = kRankingMetrics, .config = ""});
  EXPECT_THAT(page, HasSubstr("<h2>log loss</h2>"));
  EXPECT_THAT(page, HasSubstr("held-out samples: 0.55 at 640"));
  EXPECT_THAT(page, HasSubstr("held-out samples: 0.66 at 640"));
  EXPECT_THAT(page, HasSubstr("<h2>mean GAUC</h2>"));
  EXPECT_THAT(page, HasSubstr("ndcg@10: 0.31 at 640"));
}

TEST(Comparison, DrawsEveryRunInEveryChart) {
  std::vector<NamedRun> runs;
  runs.reserve(8);
  for (int i = 0; i < 8; ++i)
    runs.push_back({"run <" + std::to_string(i) + ">", RunMetrics(lines_of_a_run()), kRankingMetrics});
  const std::string page = comparison_html("a & b", {{"run", "AUC"}, {"run <0>", "0.71"}}, {{"run"}}, runs);
  EXPECT_THAT(page, HasSubstr("<h1>a &amp; b</h1>"));
  EXPECT_THAT(page, HasSubstr("<td>run &lt;0&gt;</td><td>0.71</td>"));
  EXPECT_THAT(page, HasSubstr("run &lt;7&gt;: 0.71 at 320"));
  EXPECT_THAT(page, HasSubstr("class=\"line s1 dotted\""));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  std::vector<Json> lines = lines_of_a_run();
  for (Json& line : lines) line["samples"] = "altered";
  runs.push_back({"altered", RunMetrics(std::move(lines)), kRankingMetrics});
  EXPECT_THROW(comparison_html("a", {{"run"}}, {{"run"}}, runs), Error);
}

// The second run has no evaluation: the third one once had its colour in that chart, and another one
// elsewhere.
TEST(Comparison, ARunHasOneColourInEveryChart) {
  std::vector<Json> without = lines_of_a_run();
  std::erase_if(without, [](const Json& line) { return line["event"] == "eval"; });
  const std::vector<NamedRun> runs{{"a", RunMetrics(lines_of_a_run()), kRankingMetrics},
                                   {"b", RunMetrics(without), kRankingMetrics},
                                   {"c", RunMetrics(lines_of_a_run()), kRankingMetrics}};
  const std::string page = comparison_html("x", {{"run"}}, {{"run", "seed"}, {"a", "1"}}, runs);
  EXPECT_THAT(page, HasSubstr("<circle class=\"mark s2\""));
  const std::string auc = page.substr(page.find("AUC of the held-out samples"));
  const std::string chart = auc.substr(0, auc.find("</section>"));
  EXPECT_THAT(chart, HasSubstr("class=\"line s0\""));
  EXPECT_THAT(chart, Not(HasSubstr("class=\"line s1\"")));
  EXPECT_THAT(chart, HasSubstr("class=\"line s2\""));
  EXPECT_LT(page.find("AUC of the held-out samples"), page.find("Configuration, where it differs"));
}

TEST(Comparison, RunsOfOtherSamplesShareNoAxis) {
  std::vector<NamedRun> runs;
  for (const char* const name : {"a", "b", "c"})
    runs.push_back(
        {name, RunMetrics(lines_of_a_run()), kRankingMetrics, name == std::string("b") ? "paper" : "valid"});
  const std::string page = comparison_html("x", {{"run"}}, {{"key"}}, runs, "b & others");
  EXPECT_THAT(page, HasSubstr("<h2>AUC of the held-out samples of a, c</h2>"));
  EXPECT_THAT(page, HasSubstr("<h2>AUC of the held-out samples of b</h2>"));
  EXPECT_THAT(page, HasSubstr("<b>b &amp; others</b>"));
  EXPECT_THAT(page, HasSubstr("<h2>training loss</h2>"));
  const std::string chart = page.substr(page.find("samples of a, c</h2>"));
  EXPECT_THAT(chart.substr(0, chart.find("</section>")), Not(HasSubstr("class=\"line s1\"")));
}

TEST(Report, TheTileShowsTheLastValueAndTheBest) {
  std::vector<Json> lines = lines_of_a_run();
  lines.push_back({{"event", "eval"}, {"step", 20}, {"samples", 640}, {"auc", 0.69}, {"baseline_auc", 0.65}});
  const std::string page =
      report_html({.title = "run", .metrics = RunMetrics(lines), .specs = kRankingMetrics, .config = ""});
  EXPECT_THAT(page,
              HasSubstr("<b>0.6900</b><small>last; best 0.7100 at step 10; running rates 0.6500</small>"));
  lines.push_back({{"event", "eval"}, {"step", 30}, {"samples", 960}, {"auc", 0.6}, {"baseline_auc", 0.65}});
  EXPECT_THAT(
      report_html({.title = "run", .metrics = RunMetrics(lines), .specs = kRankingMetrics, .config = ""}),
      HasSubstr("running rates 0.6500, better than the model</small>"));
}

TEST(Report, TheMetricOfTheBestCheckpointComesFirstWithItsBaselinesByName) {
  std::vector<Json> lines = lines_of_a_run();
  lines.push_back(
      {{"event", "eval"},
       {"step", 20},
       {"samples", 640},
       {"auc", 0.69},
       {"ne", 3.6},
       {"log_loss", 1.5},
       {"ndcg@10", 0.31},
       {"item_baselines", {{"popularity", {{"ndcg@10", 0.2}}}, {"co_occurrence", {{"ndcg@10", 0.4}}}}}});
  const ReportSource source{.title = "run",
                            .metrics = RunMetrics(lines),
                            .specs = kRankingMetrics,
                            .config = "",
                            .draws_negatives = true,
                            .best = "ndcg@10"};
  const std::string page = report_html(source);
  EXPECT_THAT(page, HasSubstr("<div class=\"tiles\"><div><span>NDCG@10</span><b>0.3100</b><small>popularity "
                              "0.2000; co_occurrence 0.4000, better than the model</small>"));
  EXPECT_LT(page.find("<h2>NDCG@10</h2>"), page.find("<h2>AUC</h2>"));
  EXPECT_THAT(page, HasSubstr("</svg>popularity <b>0.2</b>"));
  for (const char* const of_share : {"<span>NE</span>", "<h2>NE</h2>", "<h2>log loss</h2>", "<th>NE</th>"})
    EXPECT_THAT(page, Not(HasSubstr(of_share)));
}

TEST(Report, TheBestIsOfTheSamplesOfTheLastEvaluation) {
  std::vector<Json> lines = lines_of_a_run();
  lines.push_back({{"event", "resume"}, {"step", 10}, {"data", {{"from", "a"}, {"to", "b"}}}});
  lines.push_back({{"event", "eval"}, {"step", 20}, {"samples", 640}, {"auc", 0.69}, {"baseline_auc", 0.65}});
  const std::string page =
      report_html({.title = "run", .metrics = RunMetrics(lines), .specs = kRankingMetrics, .config = ""});
  EXPECT_THAT(page, HasSubstr("<b>0.6900</b><small>running rates 0.6500</small>"));
}

TEST(Report, MetricsComeFirstAndTablesScrollByThemselves) {
  const std::string page = report_html({.title = "run",
                                        .metrics = RunMetrics(lines_of_a_run()),
                                        .specs = kRankingMetrics,
                                        .config = "seed = 1"});
  EXPECT_LT(page.find("<h2>AUC</h2>"), page.find("<h2>loss</h2>"));
  EXPECT_LT(page.find("<h2>loss</h2>"), page.find("<h2>Configuration</h2>"));
  for (std::size_t at = page.find("<table>"); at != std::string::npos; at = page.find("<table>", at + 1))
    EXPECT_EQ(page.substr(at - 18, 18), "<div class=\"wide\">");
  EXPECT_THAT(page, Not(HasSubstr("minmax(430px")));
}

TEST(Report, DrawsTheWorkOfRanksAsDividedAndInSlices) {
  std::vector<Json> lines = lines_of_a_run();
  const auto page = [&] {
    return report_html(
        {.title = "run", .metrics = RunMetrics(lines), .specs = kRankingMetrics, .config = ""});
  };
  EXPECT_THAT(page(), Not(HasSubstr("work of the ranks")));
  EXPECT_THAT(page(), Not(HasSubstr("Work of each rank")));
  lines.back()["work_max_over_mean"] = 1.02;
  lines.back()["work_max_over_mean_of_slices"] = 1.61;
  EXPECT_THAT(page(), HasSubstr("<h2>work of the ranks: the largest over the mean</h2>"));
  EXPECT_THAT(page(), HasSubstr("as divided: 1.02 at 640"));
  EXPECT_THAT(page(), HasSubstr("in slices: 1.61 at 640"));
  lines.back()["work_of_ranks"] = {1.02, 0.98};
  lines.back()["work_of_ranks_in_slices"] = {0.39, 1.61};
  lines.back()["division_ms"] = 0.25;
  lines.back()["division_exposed_ms"] = 0.125;
  EXPECT_THAT(page(), HasSubstr("<h2>Work of each rank</h2>"));
  EXPECT_THAT(page(), HasSubstr("is 1.6100 of the mean in slices and 1.0200 as divided"));
  EXPECT_THAT(page(), HasSubstr("took 0.250 ms on a loader's thread; steps waited for 0.125 ms"));
  lines.back()["work_of_ranks"] = "altered";
  EXPECT_THROW(page(), Error);
}

// 940 units for two ranks, a tenth of each rank's free on both sides; 160 units for the largest work.
TEST(WorkDrawing, HasTwoBarsForEachRankAndTheMean) {
  const std::string svg = work_drawing({0.5, 1.6}, {0.8, 1.2});
  EXPECT_THAT(svg,
              HasSubstr("<rect class=\"mark s1\" x=\"97.00\" y=\"120.0\" width=\"188.00\" height=\"50.0\">"));
  EXPECT_THAT(svg,
              HasSubstr("<rect class=\"mark s0\" x=\"285.00\" y=\"90.0\" width=\"188.00\" height=\"80.0\">"));
  EXPECT_THAT(svg, HasSubstr("height=\"160.0\"><title>rank 1, in slices: 1.6</title>"));
  EXPECT_THAT(svg, HasSubstr("<path class=\"grid\" d=\"M50 70.0 h940\"/>"));
  EXPECT_EQ(work_drawing({1}, {1}), "");
  const std::vector<double> many(1024, 1.0);
  EXPECT_THAT(work_drawing(many, many), HasSubstr(">992</text>"));
  EXPECT_THAT(work_drawing(many, many), Not(HasSubstr(">993</text>")));
}

TEST(Report, DrawsTheStagesOfAStep) {
  const std::string page = report_html(
      {.title = "run", .metrics = RunMetrics(lines_of_a_run()), .specs = kRankingMetrics, .config = ""});
  EXPECT_THAT(page, HasSubstr("<h2>The stages of a step</h2>"));
  EXPECT_THAT(page, HasSubstr("a step: 75 ms"));
}

// 980 units for 100 ms: a stage of 10 ms is too narrow for its name, which is then below it.
TEST(StageDrawing, DividesABarInTheOrderOfTheStages) {
  const std::string svg = stage_drawing({{"row lookup", 10}, {"<forward>", 30}, {"backward", 60}});
  EXPECT_THAT(svg, HasSubstr("<rect class=\"mark s0\" x=\"10.0\" y=\"20\" width=\"98.0\""));
  EXPECT_THAT(svg, HasSubstr("<rect class=\"mark s1\" x=\"108.0\" y=\"20\" width=\"294.0\""));
  EXPECT_THAT(svg, HasSubstr("<rect class=\"mark s2\" x=\"402.0\" y=\"20\" width=\"588.0\""));
  EXPECT_THAT(svg, HasSubstr("<path class=\"leader\" d=\"M59.0 64 V106.0 h12\"/>"));
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"start\">row lookup 10 ms, 10.0 %</text>"));
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"middle\">&lt;forward&gt; 30 ms, 30.0 %</text>"));
  EXPECT_EQ(stage_drawing({{"forward", 0}}), "");
}

TEST(Report, OfARunThatHasJustBegun) {
  const std::string page = report_html(
      {.title = "run", .metrics = RunMetrics(std::vector<Json>{}), .specs = kRankingMetrics, .config = ""});
  EXPECT_THAT(page, HasSubstr("No step has been logged yet"));
}

}  // namespace
}  // namespace hstu
