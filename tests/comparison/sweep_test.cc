#include "hstu/comparison/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/comparison/evaluated_samples.h"
#include "hstu/comparison/sweep_summary.h"
#include "hstu/metrics/ranking.h"
#include "support/kind_options.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

SweepWords words_of(const std::vector<std::string>& vary, std::int64_t seeds = 1) {
  const Path config = temporary_folder() / "c.toml";
  write_file(config, "seed = 5\n[data]\npath = \"ds\"\n");
  SweepWords words{.config = config, .output = "sweep", .set = {}, .vary = {}, .seeds = seeds};
  for (const std::string& word : vary) words.vary.push_back(parse_variation(word));
  return words;
}

std::vector<std::string> names_of(const std::vector<SweepRun>& runs) {
  std::vector<std::string> names;
  names.reserve(runs.size());
  for (const SweepRun& run : runs) names.push_back(run.name);
  return names;
}

TEST(Sweep, IsEveryCombinationWithEverySeed) {
  const auto runs = plan_sweep(words_of({"model.layers=1,2", "training.batch_size=8,16"}, 2));
  ASSERT_EQ(runs.size(), 8u);
  EXPECT_EQ(runs[0].name, "model.layers=1,training.batch_size=8,seed=5");
  EXPECT_EQ(runs[1].name, "model.layers=1,training.batch_size=8,seed=6");
  EXPECT_EQ(runs[2].name, "model.layers=1,training.batch_size=16,seed=5");
  EXPECT_EQ(dlrmv4_of(runs[7].options).layers, 2);
  EXPECT_EQ(runs[7].options.training.batch_size, 16);
  EXPECT_EQ(runs[7].options.seed, 6u);
  EXPECT_THAT(runs[7].setting, ElementsAre(Pair("model.layers", "2"), Pair("training.batch_size", "16")));
}

TEST(Sweep, ValuesMayBeListsAndPaths) {
  EXPECT_THAT(parse_variation(R"(data.pools=["a,b", "c"],[],"x,y")").values,
              ElementsAre(R"(["a,b", "c"])", "[]", R"("x,y")"));
  EXPECT_THAT(names_of(plan_sweep(words_of({"data.path=/a b/one,/a b/two"}))),
              ElementsAre("data.path=_a_b_one,seed=5", "data.path=_a_b_two,seed=5"));
  EXPECT_THAT(names_of(plan_sweep(words_of({"seed=3,4"}))), ElementsAre("seed=3", "seed=4"));
}

TEST(Sweep, RefusesWhatIsNoSweep) {
  for (const char* word : {"model.layers", "=1", "model.layers=", "model.layers=1,,2", "model.layers=1,1"})
    EXPECT_THROW(parse_variation(word), UsageError) << word;
  EXPECT_THROW(plan_sweep(words_of({"seed=1,2"}, 2)), UsageError);
  EXPECT_THROW(plan_sweep(words_of({"model.layers=1", "model.layers=2"})), UsageError);
  EXPECT_THROW(plan_sweep(words_of({"data.path=/a,_a"})), UsageError) << "one folder for two runs";
  EXPECT_THROW(plan_sweep(words_of({"data.path=" + std::string(300, 'x')})), UsageError);
  EXPECT_THROW(plan_sweep(words_of({"model.layers=1,0"})), UsageError);
}

TEST(Sweep, AnotherRunsFolderIsRefused) {
  const Path folder = temporary_folder();
  const auto runs = plan_sweep(words_of({"model.layers=1,2"}));
  EXPECT_EQ(state_of(runs[0], folder / "run"), RunProgress::missing);
  RunOptions chosen = runs[0].options;
  chosen.device = "host";  // what "auto" chose
  create_run_folder(folder / "run", chosen);
  EXPECT_EQ(state_of(runs[0], folder / "run"), RunProgress::begun);
  EXPECT_THROW(state_of(runs[1], folder / "run"), UsageError);
  write_file(folder / "run/metrics.jsonl", "{\"event\":\"end\",\"reason\":\"interrupted\"}\n");
  EXPECT_EQ(state_of(runs[0], folder / "run"), RunProgress::begun);
  write_file(folder / "run/metrics.jsonl", "{\"event\":\"end\",\"reason\":\"completed\"}\n");
  EXPECT_EQ(state_of(runs[0], folder / "run"), RunProgress::ended);
}

// A run that is killed while it removes its own folder may leave it empty.
TEST(Sweep, AnEmptyFolderIsOfARunThatHasNotBegun) {
  const Path folder = temporary_folder();
  const auto runs = plan_sweep(words_of({"model.layers=1,2"}));
  std::filesystem::create_directories(folder / "run");
  EXPECT_EQ(state_of(runs[0], folder / "run"), RunProgress::missing);
  create_run_folder(folder / "run", runs[0].options);
  EXPECT_EQ(state_of(runs[0], folder / "run"), RunProgress::begun);
}

TEST(Sweep, SummaryIsOfTheSeedsThatEnded) {
  EXPECT_EQ(spread_of({}), std::nullopt);
  EXPECT_EQ(spread_of({3, 1, 2})->median, 2);
  EXPECT_EQ(spread_of({4, 1, 2, 3})->median, 2.5);
  EXPECT_EQ(spread_of({4, 1, 2, 3})->most, 4);
  std::vector<SweepResult> results;
  double auc = 0.5;
  for (SweepRun& run : plan_sweep(words_of({"model.layers=1,2"}, 3))) {
    SweepResult result{std::move(run), "completed", {}};
    result.outcome.state = "completed";
    result.outcome.best = auc += 0.1;
    result.outcome.metrics.add("auc", auc);
    results.push_back(std::move(result));
  }
  results.back().state = "failed";
  results.back().outcome = {};
  const std::vector<Cells> table = sweep_table(results);
  ASSERT_EQ(table.size(), 3u);
  EXPECT_THAT(table[1], ElementsAre("1", "3 of 3", "0.7000", "0.6000 to 0.8000", "-", "-", "-", "0.7000",
                                    "0.6000 to 0.8000", "-"));
  EXPECT_THAT(table[2][1], "2 of 3");
  EXPECT_THAT(table[2][2], "0.9500");
  const std::string lines = sweep_lines(results);
  EXPECT_THAT(lines, HasSubstr(R"({"setting":{"model.layers":"1"},"best_metric":"auc","auc":{"median":0.7)"));
  EXPECT_THAT(lines, HasSubstr(R"("state":"failed")"));
}

RunMetrics metrics_of(const std::vector<std::string>& lines) {
  std::vector<Json> all;
  all.reserve(lines.size());
  for (const std::string& line : lines) all.push_back(Json::parse(line));
  return RunMetrics(std::move(all));
}

TEST(RunOutcome, OfARunThatEnded) {
  const RunOutcome outcome = outcome_of(
      metrics_of({R"({"event":"eval","step":10,"auc":0.7,"ne":0.9})",
                  R"({"event":"eval","step":20,"auc":0.8,"ne":0.8})",
                  R"({"event":"eval","step":30,"auc":0.6,"ne":null,"best":{"metric":"ne"}})",
                  R"({"event":"end","reason":"patience","step":30,"samples":600,"training_s":3})"}),
      kRankingMetrics);
  EXPECT_EQ(outcome.state, "patience");
  EXPECT_TRUE(outcome.ended());
  EXPECT_EQ(outcome.metrics.find("auc"), 0.6);
  EXPECT_EQ(outcome.metrics.find("ne"), std::nullopt);
  EXPECT_EQ(outcome.best_metric, "ne");
  EXPECT_EQ(outcome.best, 0.8);
  EXPECT_EQ(outcome.best_step, 20);
  EXPECT_EQ(outcome.samples_per_s, 200);
}

// As summary.json has it. A log that was moved away took its times along.
TEST(RunOutcome, TheSpeedIsOfTheSamplesOfTheLog) {
  const std::string resume = R"({"event":"resume","step":20,"samples":400})",
                    end = R"({"event":"end","reason":"completed","step":30,"samples":600,"training_s":2})",
                    save = R"({"event":"checkpoint","step":20,"samples":400,"training_s":1})";
  EXPECT_EQ(outcome_of(metrics_of({resume, end}), kRankingMetrics).samples_per_s, 100);
  EXPECT_EQ(outcome_of(metrics_of({save, resume, end}), kRankingMetrics).samples_per_s, 300);
}

TEST(RunOutcome, TheBestIsOfTheSamplesOfTheLastEvaluation) {
  std::vector<std::string> lines{R"({"event":"eval","step":10,"auc":0.9})",
                                 R"({"event":"resume","step":20,"data":{"from":"a","to":"b"}})"};
  EXPECT_EQ(outcome_of(metrics_of(lines), kRankingMetrics).best_step, 10);
  for (const char* line : {R"({"event":"eval","step":30,"auc":0.7})", R"({"event":"resume","step":30})",
                           R"({"event":"eval","step":40,"auc":0.6})"})
    lines.emplace_back(line);
  RunOutcome outcome = outcome_of(metrics_of(lines), kRankingMetrics);
  EXPECT_EQ(outcome.best, 0.7);
  EXPECT_EQ(outcome.best_step, 30);

  lines.emplace_back(R"({"event":"resume","step":40,"evaluations":"of other samples"})");
  lines.emplace_back(R"({"event":"eval","step":50,"auc":0.5})");
  EXPECT_EQ(outcome_of(metrics_of(lines), kRankingMetrics).best_step, 50);

  outcome = outcome_of(metrics_of({R"({"event":"eval","step":10,"auc":0.9,"next_window":{"window":1}})",
                                   R"({"event":"eval","step":20,"auc":0.7,"next_window":{"window":2}})"}),
                       kRankingMetrics);
  EXPECT_EQ(outcome.best, 0.7);
  EXPECT_EQ(outcome.best_step, 20);
}

TEST(RunOutcome, OfARunAtWork) {
  const RunOutcome outcome = outcome_of(
      metrics_of({R"({"event":"train","step":7,"samples":70,"samples_per_s":12})"}), kRankingMetrics);
  EXPECT_FALSE(outcome.ended());
  EXPECT_EQ(outcome.step, 7);
  EXPECT_EQ(outcome.samples_per_s, 12);
  EXPECT_EQ(outcome.best, std::nullopt);
}

TEST(RunOutcome, OfALineThatWasAlteredNamesTheFile) {
  for (const char* line : {R"({"event":"end","reason":1})", R"({"event":"end","samples":"x","training_s":3})",
                           R"({"event":"train","step":"v"})", R"({"event":"eval","best":{"metric":[]}})"}) {
    try {
      outcome_of(RunMetrics({Json::parse(line)}, "RUN/metrics.jsonl"), kRankingMetrics);
      ADD_FAILURE() << "accepted " << line;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("RUN/metrics.jsonl: a line was altered: ")) << line;
    }
  }
}

TEST(RunOutcome, KeysOfSomeKindsOfModelsAloneAreCounted) {
  const std::vector<ComparedRun> runs{
      {{"a", metrics_of({}), kRankingMetrics}, {{"model.kind", "x"}, {"model.dim", "1"}}, {}},
      {{"b", metrics_of({}), kRankingMetrics}, {{"model.kind", "y"}, {"model.heads", "2"}}, {}}};
  std::vector<std::string> of_kinds;
  EXPECT_EQ(settings_table(runs, &of_kinds),
            (std::vector<Cells>{{"key", "a", "b"}, {"model.kind", "x", "y"}}));
  EXPECT_THAT(note_on_keys(of_kinds), HasSubstr("2 keys of [model] are left out"));
}

TEST(EvaluatedSamples, ThatAreOthersAreNamedWithTheirKeys) {
  const auto run_of = [](const std::string& name, const RunOptions& options) {
    return ComparedRun{
        {name, metrics_of({}), kRankingMetrics}, {}, {}, evaluated_samples(options, "dataset")};
  };
  RunOptions fraction, paper, again;
  fraction.evaluation.holdout.fraction = again.evaluation.holdout.fraction = 0.1;
  again.training.epochs = 7;
  again.seed = 5;
  paper.evaluation.holdout.split = LastSplit::paper;
  EXPECT_EQ(note_on_samples(std::vector{run_of("a", fraction), run_of("b", again)}), "");
  EXPECT_EQ(
      note_on_samples(std::vector{run_of("a", fraction), run_of("b", paper), run_of("c", again)}),
      "(a, c) and b are evaluated on other samples (evaluation.holdout_fraction, evaluation.split): their "
      "metrics are not to be compared");
  RunOptions negatives = fraction, retrieval = fraction;
  negatives.evaluation.negatives.per_positive = 100;
  retrieval.model.choose("retrieval");
  EXPECT_THAT(
      note_on_samples(std::vector{run_of("a", fraction), run_of("b", negatives)}),
      HasSubstr("a and b are evaluated on other samples (data.negatives.exclude_seen, evaluation.negatives"));
  EXPECT_THAT(note_on_samples(std::vector{run_of("a", negatives), run_of("b", retrieval)}),
              HasSubstr("model.kind"));
}

TEST(RunOutcome, ATableNamesTheKeysThatDiffer) {
  std::vector<ComparedRun> runs;
  for (const char* layers : {"1", "2"})
    runs.push_back({{"r" + std::string(layers), metrics_of({}), kRankingMetrics},
                    {{"seed", "1"}, {"model.layers", layers}},
                    {}});
  EXPECT_EQ(settings_table(runs), (std::vector<Cells>{{"key", "r1", "r2"}, {"model.layers", "1", "2"}}));
  EXPECT_EQ(comparison_table(runs)[0][1], "AUC");
}

}  // namespace
}  // namespace hstu
