// A kind of model that hstu does not know: what trains, evaluates, resumes and predicts needs only its row of
// the list (kinds.cc).
#include "toy/toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/npy.h"
#include "hstu/base/text.h"
#include "hstu/options/options.h"
#include "hstu/plan/memory_plan.h"
#include "hstu/predict/csv_reader.h"
#include "hstu/predict/export.h"
#include "hstu/predict/predict.h"
#include "hstu/training/evaluation.h"
#include "hstu/training/run_parts.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_GT(*result.evaluation->model.auc, 0.65);
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
  EXPECT_EQ(to_json(*evaluator.run()).dump(), to_json(*result.evaluation).dump());
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
