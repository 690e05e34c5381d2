#include "hstu/batching/anchors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "batching/small_data.h"

namespace hstu {
namespace {

using small::Data;
using small::expect_error;
using Positions = std::vector<std::int64_t>;

Positions all_anchors(const Data& data, std::int64_t min_history) {
  Positions anchors;
  for (std::int64_t p = 0; p < data.size(); ++p) {
    if ((data.at(p).action & kRankableBit) && p - data.user_start(p) >= min_history) anchors.push_back(p);
  }
  return anchors;
}

// Positions by window, ascending, as in the specification.
std::vector<Positions> windows_of(const Data& data, const Positions& all, const Positions& chosen,
                                  std::int64_t seconds) {
  std::int64_t low = data.at(all[0]).time, high = low;
  for (const std::int64_t p : all) {
    low = std::min(low, data.at(p).time);
    high = std::max(high, data.at(p).time);
  }
  std::vector<Positions> windows(
      seconds == 0 ? 1 : static_cast<std::size_t>((high - low + 1 + seconds - 1) / seconds));
  for (const std::int64_t p : chosen) {
    windows[seconds == 0 ? 0 : static_cast<std::size_t>((data.at(p).time - low) / seconds)].push_back(p);
  }
  return windows;
}

void expect_windows(const AnchorList& list, const std::vector<Positions>& expected) {
  ASSERT_EQ(list.windows(), static_cast<std::int64_t>(expected.size()));
  for (std::int64_t w = 0; w < list.windows(); ++w) {
    const auto found = list.window(w);
    EXPECT_EQ(Positions(found.begin(), found.end()), expected[static_cast<std::size_t>(w)]) << "window " << w;
  }
}

DataOptions options_of(std::int64_t min_history, std::int64_t window_seconds) {
  DataOptions options;
  options.min_history = min_history;
  options.window_seconds = window_seconds;
  return options;
}

TEST(Anchors, FallIntoWindowsAsThePlainRuleSays) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    // Few events in many windows: some windows are empty.
    const Data data = small::write(small::random_events(seed, {.users = 9, .longest = 25}));
    const Dataset dataset(data.folder);
    for (const std::int64_t seconds : {0, 1, 7, 100, 100'000}) {
      const std::int64_t min_history = static_cast<std::int64_t>(seed % 4);
      const Positions all = all_anchors(data, min_history);
      const Anchors anchors = find_anchors(dataset, options_of(min_history, seconds), {});
      EXPECT_EQ(anchors.count, static_cast<std::int64_t>(all.size()));
      expect_windows(anchors.training, windows_of(data, all, all, seconds));
      EXPECT_EQ(anchors.evaluation.size(), 0);
    }
  }
}

// The training and evaluation anchors of each hold-out, directly from its definition.
struct Split {
  Positions training, evaluation;
};
template <typename Evaluates, typename Trains>
Split split_by(const Data& data, const Positions& all, const Evaluates& evaluates, const Trains& trains) {
  Split split;
  for (const std::int64_t p : all) {
    if (evaluates(data.at(p))) split.evaluation.push_back(p);
    if (trains(data.at(p))) split.training.push_back(p);
  }
  return split;
}

void expect_split(const Data& data, std::int64_t min_history, std::int64_t seconds,
                  const HoldoutOptions& holdout, const Split& expected) {
  const Positions all = all_anchors(data, min_history);
  const Anchors anchors = find_anchors(Dataset(data.folder), options_of(min_history, seconds), holdout);
  expect_windows(anchors.training, windows_of(data, all, expected.training, seconds));
  expect_windows(anchors.evaluation, windows_of(data, all, expected.evaluation, seconds));
  const Positions trained = anchors.training.first(anchors.training.size());
  const std::set<std::int64_t> training(trained.begin(), trained.end());
  for (const std::int64_t p : anchors.evaluation.first(anchors.evaluation.size())) {
    EXPECT_FALSE(training.contains(p)) << p;
  }
}

class HoldoutTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    data_ = small::write(small::random_events(GetParam()), std::to_string(GetParam()));
    for (const std::int64_t p : all_anchors(data_, 2)) times_.push_back(data_.at(p).time);
    std::sort(times_.begin(), times_.end());
  }
  Split expect_times(const HoldoutOptions& holdout, std::int64_t begin, std::int64_t end = Holdout::kNever) {
    Split split = split_by(
        data_, all_anchors(data_, 2), [&](const small::Event& e) { return e.time >= begin && e.time < end; },
        [&](const small::Event& e) { return e.time < begin; });
    expect_split(data_, 2, 50, holdout, split);
    return split;
  }
  Data data_;
  Positions times_;
};

TEST_P(HoldoutTest, LastWindows) {
  const std::int64_t windows = (times_.back() - times_.front()) / 50 + 1;
  expect_times({.windows = 1}, times_.front() + (windows - 1) * 50);
  expect_times({.windows = 3}, times_.front() + (windows - 3) * 50);
}

TEST_P(HoldoutTest, WindowsFromAGivenOneOnAndLaterOnesServeNothing) {
  expect_times({.windows = 2, .first_window = 3}, times_.front() + 150, times_.front() + 250);
  expect_times({.first_window = 3}, times_.front() + 150);
  expect_times({.windows = 100, .first_window = 3}, times_.front() + 150);
}

TEST_P(HoldoutTest, AFractionNeverSplitsEqualTimes) {
  for (const double fraction : {0.001, 0.1, 0.5}) {
    const auto wanted =
        std::max<std::int64_t>(1, std::llround(fraction * static_cast<double>(times_.size())));
    const Split split =
        expect_times({.fraction = fraction}, times_[times_.size() - static_cast<std::size_t>(wanted)]);
    EXPECT_GE(static_cast<std::int64_t>(split.evaluation.size()), wanted);
  }
}

TEST_P(HoldoutTest, LastSeconds) {
  expect_times({.seconds = 1}, times_.back());
  expect_times({.seconds = 60}, times_.back() - 59);
}

TEST_P(HoldoutTest, UsersAloneAndWithATime) {
  const auto held_out = [](const small::Event& e) { return user_split_hash(e.user, 5) >= 0.6; };
  const Positions all = all_anchors(data_, 2);
  expect_split(data_, 2, 50, {.train_user_fraction = 0.6, .split_salt = 5},
               split_by(data_, all, held_out, [&](const small::Event& e) { return !held_out(e); }));
  const std::int64_t begin = times_.back() - 99;
  expect_split(data_, 2, 0, {.seconds = 100, .train_user_fraction = 0.6, .split_salt = 5},
               split_by(
                   data_, all, [&](const small::Event& e) { return held_out(e) && e.time >= begin; },
                   [&](const small::Event& e) { return !held_out(e) && e.time < begin; }));
}

INSTANTIATE_TEST_SUITE_P(RandomData, HoldoutTest, testing::Range<std::uint64_t>(0, 6));

TEST(Anchors, ShortHistoriesAreFiltered) {
  const Data data = small::write(small::random_events(3));
  const Dataset dataset(data.folder);
  const Anchors anchors = find_anchors(dataset, options_of(10, 0), {});
  ASSERT_GT(anchors.training.size(), 0);
  for (const std::int64_t p : anchors.training.window(0)) EXPECT_GE(p - data.user_start(p), 10);
}

TEST(Anchors, HistoriesThatAreNotInTheOrderOfTimeAreRefused) {
  const Data data = small::write({{.user = 1, .time = 5, .item = 1, .action = 0x81},
                                  {.user = 2, .time = 3, .item = 1, .action = 0x81},
                                  {.user = 2, .time = 4, .item = 1, .action = 0x81}});
  EXPECT_EQ(find_anchors(Dataset(data.folder), options_of(0, 0), {}).count, 3);
  std::filesystem::remove_all(data.folder / kAnchorFolder);
  write_npy(data.folder / "timestamp.npy", std::vector<std::uint32_t>{5, 4, 3});
  const Dataset unsorted(data.folder);
  expect_error<Error>([&] { find_anchors(unsorted, options_of(0, 0), {}); },
                      {"timestamp.npy", "user 2", "order of time"});
}

TEST(Anchors, TheLastOfEachUserAreHeldOutInEveryWindow) {
  const Data data = small::write(small::random_events(8, {.users = 30}));
  for (const std::int64_t min_history : {0, 4}) {
    for (const std::int64_t last : {1, 3}) {
      Positions all = all_anchors(data, min_history);
      std::ranges::sort(all);
      Split expected;
      for (std::size_t i = 0; i < all.size(); ++i) {
        std::int64_t later = 0;  // anchors of the same user
        for (std::size_t j = i + 1; j < all.size() && data.at(all[j]).user == data.at(all[i]).user; ++j)
          ++later;
        (later < last ? expected.evaluation : expected.training).push_back(all[i]);
      }
      ASSERT_GT(expected.evaluation.size(), 10u);
      for (const std::int64_t seconds : {0, 60})
        expect_split(data, min_history, seconds, {.last = last}, expected);
    }
  }
}

TEST(Anchors, SplitsScoreTheLastEventOfEachUserOrTheOneBeforeIt) {
  const Data data = small::write(small::random_events(8, {.users = 30}));
  Positions all = all_anchors(data, 1);
  std::ranges::sort(all);
  Split valid, test, paper;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t later = 0;  // anchors of the same user
    for (std::size_t j = i + 1; j < all.size() && data.at(all[j]).user == data.at(all[i]).user; ++j) ++later;
    if (later == 0) test.evaluation.push_back(all[i]);
    if (later == 1) valid.evaluation.push_back(all[i]);
    if (later > 1) valid.training.push_back(all[i]);
    if (later > 0) paper.training.push_back(all[i]);
  }
  test.training = valid.training;
  paper.evaluation = test.evaluation;
  ASSERT_GT(valid.evaluation.size(), 10u);
  for (const std::int64_t seconds : {0, 60}) {
    expect_split(data, 1, seconds, {.split = LastSplit::valid}, valid);
    expect_split(data, 1, seconds, {.split = LastSplit::valid, .scores_test = true}, test);
    expect_split(data, 1, seconds, {.split = LastSplit::paper}, paper);
  }
  const Dataset dataset(data.folder);
  expect_error<UsageError>(
      [&] { find_anchors(dataset, options_of(1, 0), {.last = 1, .split = LastSplit::valid}); },
      {"one of", "last split"});
}

// Trap: counts of rates or of popularity that know a held-out event.
TEST(Anchors, TheLastOfEachUserLeaveOnlyEventsBeforeThemToTraining) {
  const Data data = small::write(small::random_events(8));
  const Dataset dataset(data.folder);
  const Anchors anchors = find_anchors(dataset, options_of(2, 0), {.last = 2});
  for (const std::int64_t p : anchors.training.window(0))
    EXPECT_TRUE(anchors.holdout.trains(dataset.user_at(p), false, p, data.at(p).time));
  for (const std::int64_t p : anchors.evaluation.window(0))
    EXPECT_FALSE(anchors.holdout.trains(dataset.user_at(p), false, p, data.at(p).time));
}

TEST(Anchors, NoneAtAllSaysWhatToChange) {
  const Data data = small::write(small::random_events(3));
  const Dataset dataset(data.folder);
  expect_error<UsageError>([&] { find_anchors(dataset, options_of(1000, 0), {}); },
                           {"min_history = 1000", fmt::format("{} events", data.size()),
                            fmt::format("{} users", data.users()), "decrease min_history"});
}

TEST(Anchors, HoldoutsThatLeaveNothingAreRefused) {
  const Data data = small::write(small::random_events(3));
  const Dataset dataset(data.folder);
  const auto find = [&](std::int64_t seconds, const HoldoutOptions& holdout) {
    return [&dataset, seconds, holdout] { find_anchors(dataset, options_of(0, seconds), holdout); };
  };
  expect_error<UsageError>(find(50, {.windows = 100}), {"hold-out windows", "100"});
  expect_error<UsageError>(find(50, {.first_window = 0}), {"hold-out windows", "from window 0"});
  expect_error<UsageError>(find(50, {.first_window = 99}), {"hold-out windows", "from window 99"});
  expect_error<UsageError>(find(0, {.windows = 1}), {"hold-out windows", "window_seconds"});
  expect_error<UsageError>(find(0, {.seconds = 100'000}), {"leaves 0 of", "for training"});
  const Anchors all = find_anchors(dataset, options_of(0, 0), {.seconds = 100'000}, {}, false);
  EXPECT_EQ(all.training.size(), 0);  // of a model that is evaluated on a day that its hold-out covers
  EXPECT_EQ(all.evaluation.size(), all.count);
  expect_error<UsageError>(find(0, {.train_user_fraction = 0}), {"leaves 0 of", "for training"});
  expect_error<UsageError>(find(0, {.train_user_fraction = 0.99999999}), {"0 for evaluation"});
  const Data equal = small::write(
      {{.user = 1, .time = 5, .item = 1, .action = 0x81}, {.user = 2, .time = 5, .item = 1, .action = 0x81}},
      "equal");
  const Dataset equal_times(equal.folder);
  expect_error<UsageError>([&] { find_anchors(equal_times, options_of(0, 0), {.fraction = 0.5}); },
                           {"leaves 0 of 2", "for training"});
}

TEST(Anchors, ContradictionsAreRefused) {
  const Dataset dataset(small::write(small::random_events(3)).folder);
  const auto find = [&](const HoldoutOptions& holdout, std::int64_t seconds = 50) {
    return [&dataset, holdout, seconds] { find_anchors(dataset, options_of(0, seconds), holdout); };
  };
  expect_error<UsageError>(find({.windows = 1, .fraction = 0.1}), {"one of", "windows fraction"});
  expect_error<UsageError>(find({.fraction = 0.1, .seconds = 5}), {"one of", "fraction seconds"});
  expect_error<UsageError>(find({.first_window = 2, .seconds = 5}), {"one of", "windows seconds"});
  expect_error<UsageError>(find({.seconds = 5, .last = 1}), {"one of", "seconds last"});
  expect_error<UsageError>(find({.last = -1}), {"last"});
  expect_error<UsageError>(find({.last = 1, .train_user_fraction = 0.5}),
                           {"last", "train_user_fraction = 0.5"});
  expect_error<UsageError>(find({.last = 1000}), {"leaves 0 of", "the last 1000 of each user"});
  expect_error<UsageError>(find({.fraction = 1}), {"fraction"});
  expect_error<UsageError>(find({.fraction = -0.1}), {"fraction"});
  expect_error<UsageError>(find({.windows = -1}), {"windows"});
  expect_error<UsageError>(find({.seconds = -1}), {"seconds"});
  expect_error<UsageError>(find({.train_user_fraction = 1.5}), {"train_user_fraction"});
  expect_error<UsageError>(find({}, -1), {"window_seconds"});
  expect_error<UsageError>([&] { find_anchors(dataset, options_of(-1, 0), {}); }, {"min_history"});
}

}  // namespace
}  // namespace hstu
