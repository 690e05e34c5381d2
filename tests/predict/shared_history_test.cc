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
    write_file(folder_ / "requests.csv", singles);
    const std::vector<std::string> expected = scored(request("singles.csv"))[score];
    EXPECT_EQ(last_.scores, 700);
    write_file(folder_ / "requests.csv", lists);
    EXPECT_EQ(scored(request("lists.csv"))[score], expected);
    PredictOptions small = request("small.csv");
    small.batch_size = 1;  // lists in parts
    EXPECT_EQ(scored(small)[score], expected);
  }
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
