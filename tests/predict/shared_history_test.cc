// The candidates of a request beside each of them alone.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "predict/predict_fixture.h"
#include "support/kind_options.h"

namespace hstu {
namespace {

// Histories around the border of a block of attention's keys (256).
class SharedHistory : public testing::Predict {
 protected:
  SharedHistory() {
    std::filesystem::remove_all(folder_ / "dataset");
    testing::write_small_dataset(folder_ / "dataset", 3, 330);
    options_.data.options.history_length = 300;
    dlrmv4_of(options_).max_sequence = 310;
    options_.training.max_steps = 2;
    options_.training.batch_size = 8;
  }

  // Lists of 1 to 300 items, with ids that occur often, beside the scores of each item alone.
  void expect_the_scores_of_single_items(const std::string& score = "score") {
    run("run");
    std::string lists = "request,user,time,candidates\n", singles = "request,user,time,item\n";
    const std::int64_t times[] = {0, 1500, 129'500, 130'500, 255'500, 256'500, 257'500, 299'000};
    const std::int64_t counts[] = {1, 2, 3, 40, 48, 49, 257, 300};
    for (std::size_t r = 0; r < std::size(times); ++r) {
      std::string items;
      for (std::int64_t i = 0; i < counts[r]; ++i) {
        const auto item = (7 * i + static_cast<std::int64_t>(r)) % 12;
        items += fmt::format(" {}", item);
        singles += fmt::format("{},{},{},{}\n", r, r % 3, times[r], item);
      }
      lists += fmt::format("{},{},{},{}\n", r, r % 3, times[r], items.substr(1));
    }
    const auto scores_of = [&](const std::string& requests, const std::string& output,
                               std::int64_t batch_size) {
      write_file(folder_ / "requests.csv", requests);
      PredictOptions asked = request(output);
      asked.batch_size = batch_size;
      asked.row_stable = row_stable_;
      return scored(asked)[score];
    };
    const std::vector<std::string> expected = scores_of(singles, "singles.csv", 0);
    EXPECT_EQ(last_.scores, 700);
    EXPECT_EQ(scores_of(lists, "lists.csv", 0), expected);
    EXPECT_EQ(scores_of(lists, "small.csv", 1), expected);  // lists in parts
    EXPECT_EQ(scores_of(singles, "alone.csv", 1), expected);
  }
  // On a GPU, where rows are stable if that is asked.
  void use_gpu(Precision precision) {
    options_.device = "cuda";
    options_.precision = precision;
    row_stable_ = true;
  }

  bool row_stable_ = false;
};

TEST_F(SharedHistory, ChangesNoBitOfAScore) {
  expect_the_scores_of_single_items();
}
TEST_F(SharedHistory, ChangesNoBitWithTheTimeOfTheLastEvent) {
  dlrmv4_of(options_).query_time = QueryTime::last_event;
  expect_the_scores_of_single_items();
}
// Each item has contexts of its own, and so a history of its own.
TEST_F(SharedHistory, IsNoneWhereContextsAreMadeOfTheItem) {
  options_.features.context = {{"cross", {"user", "item"}, 50, true}};
  expect_the_scores_of_single_items();
}

// As above, where the sums of attention and of products would be divided by the number of rows.
class SharedHistoryOnGpu : public SharedHistory, public ::testing::WithParamInterface<Precision> {
 protected:
  void SetUp() override {
    SharedHistory::SetUp();
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    use_gpu(GetParam());
  }
};
TEST_P(SharedHistoryOnGpu, ChangesNoBitWhereRowsAreStable) {
  dlrmv4_of(options_).head_dim = 32;
  expect_the_scores_of_single_items();
}
TEST_P(SharedHistoryOnGpu, ChangesNoBitOfTheSecondModelWhereRowsAreStable) {
  RankingGrConfig& model = use_ranking(400, {"positive"});
  model.candidates = 4, model.target_group = 4, model.head_dim = 32;
  expect_the_scores_of_single_items();
}
INSTANTIATE_TEST_SUITE_P(Precisions, SharedHistoryOnGpu, ::testing::Values(Precision::fp32, Precision::bf16),
                         [](const auto& of) { return of.param == Precision::fp32 ? "fp32" : "bf16"; });

struct RankingForm {
  std::string name;
  std::int64_t candidates, target_group;
  bool actions, contextual_mask;
};
class SharedRankingHistory : public SharedHistory, public ::testing::WithParamInterface<RankingForm> {};

TEST_P(SharedRankingHistory, ChangesNoBitOfAScore) {
  RankingGrConfig& model = use_ranking(400, {"positive"});
  model.candidates = GetParam().candidates;
  model.target_group = GetParam().target_group;
  model.actions = GetParam().actions;
  model.contextual_mask = GetParam().contextual_mask;
  expect_the_scores_of_single_items();
}
INSTANTIATE_TEST_SUITE_P(Forms, SharedRankingHistory,
                         ::testing::Values(RankingForm{"AllEvents", 0, 1, true, false},
                                           RankingForm{"LastEvents", 3, 1, true, true},
                                           RankingForm{"WithoutActions", 3, 1, false, false},
                                           RankingForm{"ItemAndAction", 2, 2, true, false},
                                           RankingForm{"GroupsOfTwo", 4, 4, true, false}),
                         [](const auto& form) { return form.param.name; });

}  // namespace
}  // namespace hstu
