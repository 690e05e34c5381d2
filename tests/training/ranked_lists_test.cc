#include "hstu/training/ranked_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "training/run_fixture.h"
#include "write_dataset.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using Lists = std::vector<std::int64_t>;

// User 3 saw two pages at time 10 and one at time 20; user 5 one at each of times 10 and 20, of one session.
Dataset pages() {
  const Path folder = temporary_folder() / "pages";
  Manifest description;
  description.name = "pages";
  description.actions = {{"positive", 1}, {"negative", 2}};
  description.label = "positive";
  description.pools = {"positive"};
  description.context = {"session"};
  EventTable table;
  table.user.append(Lists{3, 3, 3, 3, 5, 5});
  table.time.append(Lists{10, 10, 10, 20, 10, 20});
  table.item.append(Lists{1, 2, 3, 4, 5, 6});
  table.action.assign(6, 1 | kRankableBit);
  table.context.emplace_back().append(Lists{7, 8, 7, 8, 8, 8});
  std::filesystem::create_directories(folder);
  write_dataset(folder, description, table);
  return Dataset(folder);
}

TEST(RankedLists, AreOfOneUserAndOneTimeOrOneValue) {
  const Dataset dataset = pages();
  const Lists all{0, 1, 2, 3, 4, 5};
  EXPECT_EQ(ranked_lists(dataset, all, "user"), (Lists{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(ranked_lists(dataset, all, "time"), (Lists{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(ranked_lists(dataset, all, "session"), (Lists{0, 1, 0, 1, 2, 2}));
  EXPECT_EQ(ranked_lists(dataset, Lists{2, 3, 5}, "time"), (Lists{0, 1, 2})) << "of some events";
}

TEST(RankedLists, AreWholeWherePositionsComeWindowAfterWindow) {
  const Dataset dataset = pages();
  const Lists windows{0, 1, 4, 2, 3, 5};
  EXPECT_EQ(ranked_lists(dataset, windows, "user"), (Lists{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(ranked_lists(dataset, windows, "session"), (Lists{0, 1, 2, 0, 1, 2}));
}

TEST(RankedLists, OfNoColumnAreRefused) {
  const Dataset dataset = pages();
  EXPECT_THAT(testing::message_of<UsageError>([&] { ranked_lists(dataset, {}, "sesion"); }),
              HasSubstr("evaluation.ranking_list = \"sesion\": expected one of session, user, time"));
}

class EvaluatedLists : public testing::RunTest {
 protected:
  EvaluatedLists() : RunTest(12, 24) {
    options_.training.max_steps = 3;
    options_.evaluation.at_start = true;
    options_.evaluation.ranking_k = {3};
  }
};

TEST_F(EvaluatedLists, FollowTheConfiguration) {
  run("users");
  EXPECT_TRUE(log("users", "eval").front().at("ndcg@3").is_number());
  options_.evaluation.ranking_list = "time";
  run("times");
  EXPECT_TRUE(log("times", "eval").front().at("ndcg@3").is_null()) << "every list has one sample";
  EXPECT_EQ(log("times", "eval").front().at("auc"), log("users", "eval").front().at("auc"));
}

TEST_F(EvaluatedLists, AreComparedWithRunningRatesAndCoOccurrence) {
  const TrainResult result = run("users");
  const auto& baselines = result.evaluation->item_baselines;
  ASSERT_EQ(baselines.size(), 2U);
  const Measures& rates = baselines.at("running_rates");
  EXPECT_EQ(rates.find("auc"), result.evaluation->baseline.find("auc"));
  for (const char* metric : {"ndcg@3", "hit@3", "mrr"}) {
    EXPECT_TRUE(baselines.at("co_occurrence").find(metric)) << metric;
    EXPECT_EQ(log("users", "eval").back().at("item_baselines").at("running_rates").at(metric),
              *rates.find(metric));
  }
  options_.evaluation.ranking_k.clear();
  EXPECT_TRUE(run("no lists").evaluation->item_baselines.empty());
}

TEST_F(EvaluatedLists, DoNotDependOnWindows) {
  options_.evaluation.holdout.fraction = 0.5;
  options_.evaluation.holdout.seconds = 0;
  options_.dense.learning_rate = options_.sparse.learning_rate = 0;
  options_.data.options.window_seconds = 0;
  run("one window");
  options_.data.options.window_seconds = 3'000;
  run("many windows");
  const Json expected = log("one window", "eval").front(), found = log("many windows", "eval").front();
  for (const char* metric : {"ndcg@3", "recall@3", "mrr"}) {
    ASSERT_TRUE(expected.at(metric).is_number()) << metric;
    EXPECT_NEAR(found.at(metric), expected.at(metric).get<double>(), 1e-12) << metric;
  }
}

}  // namespace
}  // namespace hstu
