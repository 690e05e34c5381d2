// A kind of model that hstu does not know: what trains, evaluates, resumes and predicts needs only its row of
// the list (kinds.cc).
#include "toy/toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/cli/inspect_views.h"
#include "hstu/comparison/run_outcome.h"
#include "hstu/options/options.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/predict/csv_reader.h"
#include "hstu/predict/export.h"
#include "hstu/predict/predict.h"
#include "hstu/report/report.h"
#include "hstu/training/evaluation.h"
#include "hstu/training/run_parts.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ToyKind : public testing::RunTest {
 protected:
  ToyKind() {
    options_.training.epochs = 2;
    options_.checkpoint = {.every_steps = 5, .every_seconds = 0, .keep = 0};
    options_.sparse.learning_rate = 0.5;
    options_.sparse.kind = RowOptimizerKind::adagrad;
    options_.tables.by_name["item"].initial = {.kind = InitialKind::normal, .deviation = 0.5};
    options_.tables.by_name["user"].initial = {.kind = InitialKind::normal, .deviation = 0.5};
  }
};

TEST_F(ToyKind, Learns) {
  options_.training.epochs = 12;
  options_.data.options.window_seconds = 0;
  toy::made = 0;
  const TrainResult result = run("run");
  EXPECT_EQ(toy::made, 1) << "a start makes one model";
  EXPECT_GT(*result.evaluation->model.find("auc"), 0.65);
  EXPECT_THAT(read_file(folder_ / "run/config.toml"),
              HasSubstr("[model]\nkind = \"toy\"\ndim = 8\nevents = 4\n"));
}

TEST_F(ToyKind, ResumesToTheSameBytes) {
  run("whole");
  interrupt_and_resume("parts", "step.end", 13);
  expect_same_run("whole", "parts");
}

TEST_F(ToyKind, ParametersOfTheEndAreEvaluatedAndScoredAlike) {
  const TrainResult result = run("run");
  const RunFolder folder = open_run_folder(folder_ / "run");
  Experiment experiment(read_run_options(folder));
  load_run(Checkpoint(find_checkpoint(folder.checkpoints(), -1)), experiment);
  Evaluator evaluator(experiment);
  EXPECT_EQ(to_json(*evaluator.run(), result.metrics).dump(),
            to_json(*result.evaluation, result.metrics).dump());
  evaluator.write_predictions(folder_ / "scores");

  const NpyColumn<std::int64_t> user(folder_ / "scores/user.npy"), item(folder_ / "scores/item.npy"),
      time(folder_ / "scores/time.npy");
  std::string requests = "user,item,time\n";
  for (std::int64_t i = 0; i < user.size(); ++i)
    requests += fmt::format("{},{},{}\n", user[i], item[i], time[i]);
  write_file(folder_ / "requests.csv", requests);
  export_model({.run = folder_ / "run", .output = folder_ / "export"});
  const NpyColumn<float> expected(folder_ / "scores/score.npy");
  for (const char* const model : {"run", "export"}) {
    const Path data = folder_ / "dataset", output = folder_ / (std::string(model) + ".csv");
    predict({.model = folder_ / model, .requests = folder_ / "requests.csv", .output = output, .data = data});
    CsvReader rows{ByteSource(output)};
    const auto& columns = rows.columns();
    const auto score =
        static_cast<std::size_t>(std::find(columns.begin(), columns.end(), "score") - columns.begin());
    for (std::int64_t i = 0; i < expected.size(); ++i) {
      ASSERT_TRUE(rows.next());
      ASSERT_EQ(parse_number<float>(rows.field(score)), expected[i]) << model << " " << i;
    }
    EXPECT_FALSE(rows.next());
  }
}

TEST_F(ToyKind, IsPlannedWithAndWithoutItsDataset) {
  EXPECT_GT(plan_memory(options_, {}).activations, 0);
  options_.data.path = folder_ / "not_here";
  EXPECT_GT(plan_memory(options_, {}).activations, 0);
}

// What logs, keeps, compares and reports a run knows no metric by name.
class OtherMetrics : public ToyKind {
 protected:
  OtherMetrics() {
    options_.model.choose("error");
    options_.checkpoint.best = "mae";
    options_.evaluation.every_windows = 1;
  }
};

TEST_F(OtherMetrics, AreLoggedAndDecideWhichCheckpointIsTheBest) {
  const TrainResult result = run("run");
  const std::vector<Json> evaluations = log("run", "eval");
  ASSERT_GT(evaluations.size(), 1u);
  double least = 1;
  for (const Json& line : evaluations) {
    EXPECT_FALSE(line.contains("auc") || line.contains("baseline_auc"));
    least = std::min(least, line.at("mae").get<double>());
  }
  EXPECT_EQ(result.best.value, least);
  EXPECT_EQ(result.evaluation->find("mae"), evaluations.back().at("mae").get<double>());
  EXPECT_TRUE(log("run", "train").back().contains("lifetime_mae"));
  EXPECT_FALSE(log("run", "train").back().contains("window_auc"));
}

TEST_F(OtherMetrics, SurviveAResumeToTheByte) {
  run("whole");
  interrupt_and_resume("parts", "step.end", 13);
  expect_same_run("whole", "parts");
}

TEST_F(OtherMetrics, EndARunByTargetAndByPatience) {
  options_.evaluation.target_auc = 1;  // of the headline: every error is below
  EXPECT_EQ(run("target").reason, "target");
  options_.evaluation.target_auc = 0;
  options_.evaluation.patience = 1;
  options_.evaluation.min_delta = 1;
  EXPECT_EQ(run("patience").reason, "patience");
}

TEST_F(OtherMetrics, AreThoseOfTablesAndPages) {
  run("a");
  options_.model.choose("toy");
  options_.checkpoint.best = "auc";
  run("b");
  const std::vector<ComparedRun> runs{read_run(folder_ / "a", "a"), read_run(folder_ / "b", "b")};
  EXPECT_EQ(runs[0].outcome.best_metric, "mae");
  const std::vector<Cells> table = comparison_table(runs);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::find(table[0].begin(), table[0].end(), name) - table[0].begin());
  };
  ASSERT_LT(column("MAE"), table[0].size());
  EXPECT_NE(table[1][column("MAE")], "-");
  EXPECT_EQ(table[1][column("AUC")], "-");
  EXPECT_EQ(table[2][column("MAE")], "-");
  EXPECT_THAT(comparison_html("runs", table, settings_table(runs), std::vector{runs[0].run, runs[1].run}),
              HasSubstr("MAE of the held-out samples"));
  EXPECT_THAT(
      report_html({.title = "a", .metrics = runs[0].run.metrics, .specs = runs[0].run.specs, .config = ""}),
      ::testing::AllOf(HasSubstr("<span>MAE</span>"), HasSubstr("<h2>MAE</h2>"), Not(HasSubstr("AUC"))));
}

TEST_F(OtherMetrics, AreThoseThatInspectPrints) {
  run("run");
  const RunFolder folder = open_run_folder(folder_ / "run");
  const Json summary = Json::parse(read_file(folder_ / "run/summary.json"));
  const std::string mae = fmt::format("{:.4f}", summary.at("eval").at("mae").get<double>());
  EXPECT_THAT(run_view({{"summary", summary}}, folder),
              ::testing::AllOf(::testing::ContainsRegex("\nMAE +" + mae + "\n"),
                               ::testing::ContainsRegex("\nMAE .* points"), Not(HasSubstr("baseline"))));
}

TEST_F(OtherMetrics, OfAnotherKindAreRefused) {
  options_.checkpoint.best = "auc";
  EXPECT_THAT(testing::message_of<UsageError>([&] { check_consistency(options_); }),
              HasSubstr("checkpoint.best: unknown metric \"auc\""));
}

TEST_F(OtherMetrics, WithoutScoresOfCandidatesAreNoModelForRequests) {
  run("run");
  write_file(folder_ / "requests.csv", "user,item,time\n");
  EXPECT_THAT(testing::message_of<UsageError>([&] {
                predict({.model = folder_ / "run",
                         .requests = folder_ / "requests.csv",
                         .output = folder_ / "scores.csv",
                         .data = folder_ / "dataset"});
              }),
              HasSubstr("scores no single candidates"));
}

TEST_F(ToyKind, OtherKindsAreNotKnown) {
  const auto read = [](const char* kind) {
    parse_config<RunOptions>(fmt::format("[data]\npath = \"x\"\n[model]\nkind = \"{}\"\n", kind), "c.toml");
  };
  EXPECT_NO_THROW(read("toy"));
  EXPECT_THAT(testing::message_of<UsageError>([&] { read("dlrmv4"); }), HasSubstr("toy"));
  options_.features.attributes = {{"artist", 0}};
  EXPECT_THAT(testing::message_of<UsageError>([&] { check_consistency(options_); }),
              HasSubstr("toy has none"));
}

}  // namespace
}  // namespace hstu
