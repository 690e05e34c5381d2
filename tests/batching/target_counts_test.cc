// How often training has each item as a target: against counts of one event at a time.
#include <map>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/batching/anchors.h"
#include "hstu/batching/sample_builder.h"

namespace hstu {
namespace {

class TargetCounts : public testing::Test {
 protected:
  // Of every training anchor the item, and those of its history but for the oldest.
  std::map<std::int64_t, double> shares(const DataOptions& options, const Anchors& anchors) const {
    std::map<std::int64_t, double> counts;
    double all = 0;
    const auto add = [&](std::int64_t position) {
      ++counts[data_.at(position).item];
      ++all;
    };
    const std::uint8_t pools = options.pools.empty() ? 7 : small::kLike;
    for (std::int64_t w = 0; w < anchors.training.windows(); ++w) {
      for (const std::int64_t anchor : anchors.training.window(w)) {
        std::vector<std::int64_t> history;
        for (std::int64_t p = anchor - 1; p >= data_.user_start(anchor); --p)
          if ((data_.at(p).action & pools) != 0 && std::ssize(history) < options.history_length)
            history.push_back(p);
        if (history.empty()) continue;
        history.pop_back();
        for (const std::int64_t p : history) add(p);
        add(anchor);
      }
    }
    for (auto& [item, count] : counts) count /= all;
    return counts;
  }
  void expect_shares(std::int64_t history_length, const HoldoutOptions& holdout, std::int64_t stride = 0,
                     const std::vector<std::string>& pools = {}) const {
    DataOptions options;
    options.history_length = history_length;
    options.pools = pools;
    options.anchor_stride = stride;
    options.window_seconds = stride == 0 ? 0 : 100;
    options.strategy = HistoryStrategy::last_n;
    options.predicts_next_events = true;
    options.catalogue.frequencies = true;
    const Anchors anchors = find_anchors(dataset_, options, holdout);
    SampleBuilder builder(dataset_, options);
    builder.count_targets(anchors.training);
    const Samples samples = builder.build(anchors.training.first(1));
    ASSERT_NE(samples.frequencies, nullptr);
    const std::map<std::int64_t, double> expected = shares(options, anchors);
    ASSERT_GT(expected.size(), 10U);
    for (std::int64_t item = 0; item < 31; ++item) {
      const auto found = expected.find(item);
      EXPECT_DOUBLE_EQ(samples.frequencies->of(item), found == expected.end() ? 0 : found->second) << item;
    }
  }
  const small::Data data_ = small::write(small::random_events(4, {.users = 30, .longest = 40}));
  const Dataset dataset_{data_.folder};
};

TEST_F(TargetCounts, HaveEventsOfAllActionsAndNoFirstEvent) {
  expect_shares(100, {});
}

TEST_F(TargetCounts, HaveNoEventThatIsHeldOut) {
  expect_shares(100, {.last = 2});
}

TEST_F(TargetCounts, HaveNoEventBeforeTheHistories) {
  expect_shares(3, {});
}

TEST_F(TargetCounts, HaveAnEventAsOftenAsSamplesHaveIt) {
  expect_shares(3, {.fraction = 0.2}, 1);
}

TEST_F(TargetCounts, HaveOtherEventsThanThoseOfPoolsAsAnchorsAlone) {
  expect_shares(100, {}, 0, {"like"});
}

}  // namespace
}  // namespace hstu
