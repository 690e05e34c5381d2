// Ranks by popularity, by pairs and by the latest item: against a sort of all items, and the counts that were
// published for real sequences.
#include "hstu/baseline/next_item.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/base/random.h"
#include "hstu/batching/anchors.h"
#include "hstu/metrics/rank_metrics.h"

namespace hstu {
namespace {

using Ids = std::vector<std::int64_t>;

Ids items_of(const small::Data& data) {
  std::set<std::int64_t> items;
  for (const small::Event& event : data.events) items.insert(event.item);
  return {items.begin(), items.end()};
}

// Positions that are known: those that train, before the first evaluated one of their user.
std::vector<bool> known_events(const small::Data& data, const Dataset& dataset, const Holdout& holdout,
                               const Ids& evaluated) {
  std::vector<bool> known(static_cast<std::size_t>(data.size()));
  for (std::int64_t p = 0; p < data.size(); ++p) {
    std::int64_t first = -1;
    for (const std::int64_t e : evaluated)
      if (data.at(e).user == data.at(p).user && (first < 0 || e < first)) first = e;
    const bool held_out = holdout.users.holds_out(data.at(p).user);
    known[static_cast<std::size_t>(p)] =
        (first < 0 || p < first) && holdout.trains(dataset.user_at(p), held_out, p, data.at(p).time);
  }
  return known;
}

bool is_of_pool(const small::Event& event, const DataOptions& window) {
  constexpr std::uint8_t kAll = small::kGood | small::kLike | small::kBad;
  return (event.action & (window.pools.empty() ? kAll : small::kLike)) != 0;
}

// The history of the event at `position`: the user's last events of the pools before it.
Ids history_of(const small::Data& data, const DataOptions& window, std::int64_t position) {
  Ids history;
  for (std::int64_t p = position - 1; p >= data.user_start(position); --p)
    if (is_of_pool(data.at(p), window) && std::ssize(history) < window.history_length) history.push_back(p);
  return history;  // the latest first
}

// The rank of the item at `position`, by sorting all items.
std::int64_t sorted_rank(const small::Data& data, const std::vector<bool>& known, const DataOptions& window,
                         NextItemRule rule, std::int64_t position, std::int64_t seen_events) {
  std::map<std::int64_t, std::int64_t> count;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> pairs;
  for (std::int64_t p = 0, before = -1; p < data.size(); ++p) {
    if (p == data.user_start(p)) before = -1;
    const bool of_pool = is_of_pool(data.at(p), window);
    if (!known[static_cast<std::size_t>(p)] || (!of_pool && (data.at(p).action & kRankableBit) == 0))
      continue;
    ++count[data.at(p).item];
    if (before >= 0) ++pairs[{data.at(before).item, data.at(p).item}];
    if (of_pool) before = p;
  }
  const std::int64_t target = data.at(position).item;
  const Ids history = history_of(data, window, position);
  const std::int64_t latest = history.empty() ? -1 : data.at(history.front()).item;
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < std::min(seen_events, std::ssize(history)); ++i)
    seen.insert(data.at(history[static_cast<std::size_t>(i)]).item);
  for (std::int64_t p = data.user_start(position); seen_events == kAllEvents && p < position; ++p)
    seen.insert(data.at(p).item);
  std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> order;
  for (const std::int64_t item : items_of(data)) {
    if (seen.count(item) > 0) continue;
    std::int64_t preferred = 0;
    if (rule == NextItemRule::markov && pairs.count({latest, item}) > 0) preferred = pairs[{latest, item}];
    if (rule == NextItemRule::last && latest == item) preferred = 1;
    order.emplace_back(-preferred, -count[item], item);
  }
  std::sort(order.begin(), order.end());
  const auto at =
      std::find_if(order.begin(), order.end(), [&](const auto& item) { return std::get<2>(item) == target; });
  return at == order.end() ? kUnranked : at - order.begin() + 1;
}

void expect_sorted_ranks(const HoldoutOptions& options, std::uint64_t seed,
                         const std::vector<std::string>& pools = {}, std::int64_t history_length = 100) {
  const small::Data data =
      small::write(small::random_events(seed, {.users = 30, .longest = 40, .items = 25}));
  const Dataset dataset(data.folder);
  DataOptions window;
  window.history_length = history_length;
  window.strategy = HistoryStrategy::last_n;
  window.pools = pools;
  window.window_seconds = 0;
  const Anchors anchors = find_anchors(dataset, window, options);
  const auto evaluated_span = anchors.evaluation.window(0);
  const Ids evaluated(evaluated_span.begin(), evaluated_span.end());
  ASSERT_GT(evaluated.size(), 10u);
  const SampleBuilder samples(dataset, window);
  const NextItemBaselines baselines(dataset, anchors.holdout, samples, evaluated, items_of(data));
  const std::vector<bool> known = known_events(data, dataset, anchors.holdout, evaluated);
  for (const auto& [word, rule] : kNextItemRules) {
    for (const std::int64_t seen : {std::int64_t{0}, std::int64_t{3}, kAllEvents}) {
      const Ids ranks = baselines.ranks(rule, evaluated, seen);
      for (std::size_t i = 0; i < evaluated.size(); ++i)
        EXPECT_EQ(ranks[i], sorted_rank(data, known, window, rule, evaluated[i], seen))
            << word << ", event " << evaluated[i] << ", seen " << seen;
    }
  }
}

TEST(NextItemBaselines, RankAsASortOfAllItemsForTheLastEventsOfUsers) {
  for (const std::uint64_t seed : {1, 2, 3}) expect_sorted_ranks({.last = 1}, seed);
  expect_sorted_ranks({.last = 2}, 4);
}

TEST(NextItemBaselines, RankAsASortOfAllItemsForAHoldOutInTime) {
  expect_sorted_ranks({.fraction = 0.3}, 5);
}

TEST(NextItemBaselines, SeeTheHistoriesThatAModelSees) {
  expect_sorted_ranks({.last = 1}, 6, {"like"});
  expect_sorted_ranks({.last = 1}, 7, {}, 2);
}

TEST(NextItemBaselines, DoNotKnowEventsOfUsersThatDoNotTrain) {
  expect_sorted_ranks({.train_user_fraction = 0.6, .split_salt = 5}, 8);
}

TEST(NextItemBaselines, DoNotKnowTheEventThatChoosesTheModel) {
  expect_sorted_ranks({.split = LastSplit::valid, .scores_test = true}, 9);
}

TEST(NextItemBaselines, HaveNoRankOfAnItemThatTheCatalogueHasNot) {
  const small::Data data = small::write({{.user = 1, .time = 1, .item = 4, .action = kRankableBit},
                                         {.user = 1, .time = 2, .item = 9, .action = kRankableBit}});
  const Dataset dataset(data.folder);
  const Ids evaluated{1}, catalogue{4, 5};
  const SampleBuilder samples(dataset, {});
  const NextItemBaselines baselines(dataset, {}, samples, evaluated, catalogue);
  EXPECT_EQ(baselines.ranks(NextItemRule::popularity, evaluated, 0), Ids{kUnranked});
  EXPECT_EQ(Ids(baselines.counts().begin(), baselines.counts().end()), (Ids{1, 0}));
}

// Published counts: leave the last event out, all items of the file, hits at 1, 5, 10, 50, 100, 200.
struct PublishedHits {
  NextItemRule rule;
  bool exclude_seen;
  std::vector<std::int64_t> hits;
  double ndcg, mrr;
};

// Lines "user item item ...", the oldest first; times of the same form.
std::vector<small::Event> sequences_of(const std::vector<Path>& files, const Path& times = {}) {
  std::vector<small::Event> events;
  std::ifstream of_times(times);
  for (const Path& file : files) {
    std::ifstream lines(file);
    for (std::string line, when; std::getline(lines, line);) {
      std::istringstream words(line);
      small::Event event{.action = small::kGood | kRankableBit};
      words >> event.user;
      std::istringstream clock;
      if (!times.empty() && std::getline(of_times, when)) clock.str(when.substr(when.find(' ')));
      for (std::int64_t n = 0; words >> event.item; ++n) {
        event.time = n;
        if (!times.empty()) clock >> event.time;
        events.push_back(event);
      }
    }
  }
  return events;
}

class PublishedBaselines : public testing::Test {
 protected:
  void SetUp() override {
    const char* const data = std::getenv("HSTU_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "set HSTU_TEST_DATA to a folder that contains retrieval/";
    root_ = Path(data) / "retrieval";
  }
  void open(std::vector<small::Event> events) {
    data_ = small::write(std::move(events));
    dataset_.emplace(data_.folder);
    for (std::int64_t u = 0; u < dataset_->users(); ++u)
      evaluated_.push_back(dataset_->events_of(u).last_range().end - 1);
    samples_.emplace(*dataset_, DataOptions());
    baselines_.emplace(*dataset_, Holdout(), *samples_, evaluated_, items_of(data_));
  }
  void expect(const PublishedHits& published) const {
    SCOPED_TRACE(testing::Message() << static_cast<int>(published.rule) << published.exclude_seen);
    const Ids ranks = baselines_->ranks(published.rule, evaluated_, published.exclude_seen ? kAllEvents : 0);
    Ids hits;
    for (const std::int64_t k : kRetrievalCutoffs)
      hits.push_back(std::count_if(ranks.begin(), ranks.end(), [&](std::int64_t rank) { return rank <= k; }));
    EXPECT_EQ(hits, published.hits);
    const Measures measures = rank_metrics(ranks);
    EXPECT_NEAR(*measures.find("ndcg@10"), published.ndcg, 5.1e-6);
    EXPECT_NEAR(*measures.find("mrr"), published.mrr, 5.1e-6);
  }
  Path root_;
  small::Data data_;
  std::optional<Dataset> dataset_;
  Ids evaluated_;
  std::optional<SampleBuilder> samples_;
  std::optional<NextItemBaselines> baselines_;
};

TEST_F(PublishedBaselines, OfMovieLens1MHaveTheirHits) {
  open(sequences_of({root_ / "ml-1m/ml-1m-order-1.txt", root_ / "ml-1m/ml-1m-order-2.txt"}));
  ASSERT_EQ(dataset_->users(), 6040);
  ASSERT_EQ(dataset_->events(), 999611);
  ASSERT_EQ(baselines_->items().size(), 3416U);
  expect({NextItemRule::popularity, true, {34, 122, 219, 844, 1365, 2061}, 0.01782, 0.01990});
  expect({NextItemRule::popularity, false, {18, 47, 98, 625, 1048, 1720}, 0.00790, 0.01197});
  expect({NextItemRule::markov, true, {336, 928, 1300, 2384, 2952, 3529}, 0.12614, 0.10975});
}

TEST_F(PublishedBaselines, OfBeautyHaveTheirHitsAndTheirSplitByTies) {
  open(sequences_of({root_ / "beauty/Beauty.txt"}, root_ / "beauty/Beauty_time.txt"));
  ASSERT_EQ(dataset_->users(), 22363);
  expect({NextItemRule::popularity, true, {18, 172, 301, 831, 1378, 1904}, 0.00608, 0.00598});
  expect({NextItemRule::popularity, false, {18, 163, 256, 822, 1365, 1896}, 0.00538, 0.00580});
  expect({NextItemRule::markov, true, {667, 1333, 1693, 2524, 3027, 3574}, 0.05034, 0.04534});
  const Ids ranks = baselines_->ranks(NextItemRule::markov, evaluated_, kAllEvents);
  Ids tied, others;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t p = evaluated_[i];
    (dataset_->time()[p] == dataset_->time()[p - 1] ? tied : others).push_back(ranks[i]);
  }
  EXPECT_EQ(tied.size(), 9719U);
  const Measures of_tied = rank_metrics(tied), of_others = rank_metrics(others);
  EXPECT_NEAR(*of_tied.find("hr@10"), 0.1193, 5e-5);
  EXPECT_NEAR(*of_tied.find("ndcg@10"), 0.0840, 5e-5);
  EXPECT_NEAR(*of_others.find("hr@10"), 0.0422, 5e-5);
  EXPECT_NEAR(*of_others.find("ndcg@10"), 0.0245, 5e-5);
}

// Most of what pairs of neighbours know of Beauty is the order inside a day.
TEST_F(PublishedBaselines, OfBeautyLoseTheOrderOfShuffledTies) {
  std::vector<small::Event> events =
      sequences_of({root_ / "beauty/Beauty.txt"}, root_ / "beauty/Beauty_time.txt");
  RandomStream random{1};
  for (std::size_t begin = 0, end = 0; begin < events.size(); begin = end) {
    const auto is_tied = [&](std::size_t i) {
      return events[i].user == events[begin].user && events[i].time == events[begin].time;
    };
    while (end < events.size() && is_tied(end)) ++end;
    for (std::size_t i = end - 1; i > begin; --i)
      std::swap(events[i].item, events[begin + random.below(i - begin + 1)].item);
  }
  open(std::move(events));
  const Measures markov = rank_metrics(baselines_->ranks(NextItemRule::markov, evaluated_, kAllEvents));
  EXPECT_NEAR(*markov.find("hr@10"), 0.0599, 0.002);
  EXPECT_NEAR(*markov.find("ndcg@10"), 0.0364, 0.002);
}

TEST_F(PublishedBaselines, OfSportsHaveTheirHits) {
  open(sequences_of({root_ / "sports/Sports_and_Outdoors.txt"}));
  ASSERT_EQ(dataset_->users(), 35598);
  expect({NextItemRule::popularity, true, {84, 204, 325, 1151, 1785, 2992}, 0.00523, 0.00607});
  expect({NextItemRule::markov, true, {499, 1099, 1458, 2573, 3234, 4340}, 0.02589, 0.02365});
}

}  // namespace
}  // namespace hstu
