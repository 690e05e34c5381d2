// Popularity and co-occurrence against counts of one event at a time.
#include "hstu/baseline/item_baselines.h"

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/batching/anchors.h"

namespace hstu {
namespace {

using Ids = std::vector<std::int64_t>;

bool is_positive_event(const small::Event& event) {
  constexpr std::uint8_t kWanted = small::kGood | kRankableBit;
  return (event.action & kWanted) == kWanted;
}

class ItemBaselines : public testing::Test {
 protected:
  void expect_counts(const HoldoutOptions& options, std::int64_t history_length = 1000) const {
    DataOptions data;
    data.history_length = history_length;
    data.strategy = HistoryStrategy::last_n;
    data.window_seconds = 0;
    const Anchors anchors = find_anchors(dataset_, data, options);
    const Holdout& holdout = anchors.holdout;
    const auto trains = [&](std::int64_t p) {
      const std::int64_t user = dataset_.user_at(p);
      const bool held_out = holdout.users.holds_out(data_.at(p).user);
      return is_positive_event(data_.at(p)) && holdout.trains(user, held_out, p, data_.at(p).time);
    };
    const TrainingItems items(dataset_, holdout, false);
    const SampleBuilder samples(dataset_, data);
    Ids positions, ranked;
    for (const std::int64_t p : anchors.evaluation.window(0)) {
      for (const std::int64_t item : {data_.at(p).item, p % 30, std::int64_t{999}}) {
        positions.push_back(p);
        ranked.push_back(item);
      }
    }
    ASSERT_GT(positions.size(), 30u);
    const auto popularity = score_popularity(items, {positions, ranked}),
               follows = score_co_occurrence(dataset_, holdout, samples, items, {positions, ranked});
    double most = 0;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      std::int64_t of_item = 0, all = 0, pairs = 0, latest = -1;
      for (std::int64_t p = positions[i] - 1, seen = 0; p >= data_.user_start(positions[i]); --p) {
        if ((data_.at(p).action & ~kRankableBit) == 0 || ++seen > history_length) continue;
        if (latest < 0 && is_positive_event(data_.at(p))) latest = p;
      }
      for (std::int64_t p = 0, before = -1; p < data_.size(); ++p) {
        if (p == data_.user_start(p)) before = -1;
        if (!trains(p)) continue;
        ++all;
        of_item += data_.at(p).item == ranked[i] ? 1 : 0;
        if (before >= 0 && latest >= 0 && data_.at(before).item == data_.at(latest).item &&
            data_.at(p).item == ranked[i])
          ++pairs;
        before = p;
      }
      EXPECT_EQ(popularity[i], static_cast<double>(of_item));
      EXPECT_DOUBLE_EQ(follows[i], static_cast<double>(pairs) +
                                       static_cast<double>(of_item) / static_cast<double>(all + 1));
      most = std::max(most, follows[i]);
    }
    EXPECT_GE(most, 1) << "no pair occurs";
  }
  const small::Data data_ = small::write(small::random_events(4, {.users = 30, .longest = 80}));
  const Dataset dataset_{data_.folder};
};

TEST_F(ItemBaselines, CountEventsBeforeAHoldOutInTime) {
  expect_counts({.fraction = 0.2});
}

TEST_F(ItemBaselines, CountEventsBeforeTheLastOfEachUser) {
  expect_counts({.last = 2});
}

TEST_F(ItemBaselines, SeeTheHistoriesThatAModelSees) {
  expect_counts({.fraction = 0.2}, 2);
}

TEST_F(ItemBaselines, CountEventsOfUsersThatTrain) {
  expect_counts({.train_user_fraction = 0.6, .split_salt = 5});
}

}  // namespace
}  // namespace hstu
