// Runs that score each window before they train it (evaluation.next_window).
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/comm/thread_group.h"
#include "training/run_fixture.h"

namespace hstu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Days of ten events of each user, in windows of 5,000 seconds: five events of each user.
class NextWindow : public testing::RunTest {
 protected:
  NextWindow() : RunTest(40, 20) {
    options_.features.item_rows = 12;
    options_.features.context[0].rows = 40;
    options_.evaluation = {};
    options_.evaluation.next_window = true;
    options_.evaluation.at_start = true;
    options_.data.options.window_seconds = 5000;
    options_.checkpoint.every_windows = 1;
    options_.checkpoint.keep = 0;
  }

  std::vector<std::int64_t> scored_windows(const std::string& name) const {
    std::vector<std::int64_t> windows;
    for (const Json& line : log(name, "eval"))
      windows.push_back(line.at("next_window").at("window").get<std::int64_t>());
    return windows;
  }
};

TEST_F(NextWindow, EachWindowIsScoredOnceBeforeItIsTrained) {
  run("run");
  const std::vector<Json> lines = log("run", "eval");
  EXPECT_THAT(scored_windows("run"), ElementsAre(0, 1, 2, 3));
  std::int64_t trained = 0;
  for (const Json& line : lines) {
    const Json& window = line.at("next_window");
    EXPECT_EQ(line.at("samples"), trained) << "the window was scored after it had been trained";
    EXPECT_EQ(line.at("n"), window.at("samples"));
    EXPECT_EQ(window.at("first_time").get<std::int64_t>() / 5000, window.at("window"));
    EXPECT_EQ(window.at("last_time").get<std::int64_t>() / 5000, window.at("window"));
    trained += window.at("samples").get<std::int64_t>();
  }
  EXPECT_EQ(trained, 800);
}

TEST_F(NextWindow, AtStartFalseTrainsTheFirstWindowUnscored) {
  options_.evaluation.at_start = false;
  run("run");
  EXPECT_THAT(scored_windows("run"), ElementsAre(1, 2, 3));
}

TEST_F(NextWindow, TheScoresAreThoseOfTheModelOfThatMoment) {
  run("run");
  const Json line = log("run", "eval")[2];
  const auto step = line.at("step").get<std::int64_t>();
  Experiment experiment(options_);
  const RunState state = load_run(Checkpoint(find_checkpoint(folder_ / "run/checkpoints", step)), experiment);
  ASSERT_EQ(window_to_score(experiment, state.next), 2);
  const EvaluationResult result = *Evaluator::of_window(experiment, 2).run();
  EXPECT_EQ(result.model.find("auc"), line.at("auc").get<double>());
  EXPECT_EQ(result.baseline.find("auc"), line.at("baseline_auc").get<double>());
}

// What a hold-out of the same samples measures, with the model and the rates of before.
TEST_F(NextWindow, EqualsAHoldoutOfThatWindow) {
  run("run");
  const Json line = log("run", "eval")[3];
  options_.evaluation.next_window = false;
  options_.evaluation.holdout.windows = 1;
  options_.evaluation.at_start = false;
  const TrainResult held_out = run("held_out");
  EXPECT_EQ(held_out.steps, line.at("step"));
  EXPECT_EQ(held_out.evaluation->model.find("auc"), line.at("auc").get<double>());
  EXPECT_EQ(held_out.evaluation->baseline.find("ne"), line.at("baseline_ne").get<double>());
}

TEST_F(NextWindow, WindowsOfLaterEpochsAreNotScored) {
  options_.training.epochs = 2;
  run("run");
  EXPECT_THAT(scored_windows("run"), ElementsAre(0, 1, 2, 3));
}

TEST_F(NextWindow, InterruptionsChangeNothing) {
  run("calm");
  const auto evaluations = static_cast<int>(log("calm", "eval").size());
  for (const auto& [point, count] : std::vector<std::pair<std::string, int>>{
           {"evaluation.batch", 2}, {"evaluation.end", evaluations}, {"step.end", 7}, {"save.end", 2}}) {
    const std::string name = fmt::format("{}{}", point, count);
    interrupt_and_resume(name, point, count);
    expect_same_run("calm", name);
  }
}

TEST_F(NextWindow, NewDataAreScoredBeforeTheyAreTrained) {
  for (const std::string name : {"calm", "torn"}) run(name);
  testing::extend_small_dataset(folder_ / "dataset", 20, 30);
  resume("calm");
  EXPECT_THAT(scored_windows("calm"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(log("calm", "eval")[4].at("samples"), 800);
  for (const auto& [point, count] :
       std::vector<std::pair<std::string, int>>{{"evaluation.batch", 1}, {"step.end", 3}})
    interrupt("torn", point, count, true);
  resume("torn");
  expect_same_run("calm", "torn");
}

TEST_F(NextWindow, SeveralRanksScoreTheSameWindows) {
  run("one");
  const RunFolder folder = create_run_folder(folder_ / "three", options_);
  run_ranks(3, [&](Communicator& comm) {
    const TrainRequest request{.options = options_, .folder = folder, .version = "test"};
    if (comm.rank() > 0) return follow(request, comm);
    train(request, comm);
  });
  EXPECT_EQ(scored_windows("three"), scored_windows("one"));
  const std::vector<Json> one = log("one", "eval"), three = log("three", "eval");
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(three[i].at("n"), one[i].at("n"));
    EXPECT_NEAR(three[i].at("ne").get<double>(), one[i].at("ne").get<double>(), 1e-5);
  }
}

TEST_F(NextWindow, RefusesAHoldoutByName) {
  options_.evaluation.holdout.fraction = 0.1;
  const std::string message = testing::message_of<UsageError>([&] { check_consistency(options_); });
  EXPECT_THAT(message, HasSubstr("evaluation.next_window = true and evaluation.holdout_fraction"));
  options_.evaluation.holdout.fraction = 0;
  options_.checkpoint.best = "auc";
  EXPECT_THAT(testing::message_of<UsageError>([&] { check_consistency(options_); }),
              HasSubstr("checkpoint.best"));
}

}  // namespace
}  // namespace hstu
