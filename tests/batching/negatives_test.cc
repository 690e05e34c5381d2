// Negatives: the same in every division of the work, never an excluded item, and distributed as wanted.
#include "hstu/batching/negatives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/batching/anchors.h"
#include "hstu/batching/loader.h"

namespace hstu {
namespace {

using Ids = std::vector<std::int64_t>;
using small::kGood;
using Drawn = std::map<Ids, Ids>;  // items by cursor and position

// The items of every candidate, sample by sample.
class CandidatesLayout final : public BatchLayout {
 public:
  void lay_out(const Samples& samples, LayoutScratch& /*scratch*/, Batch& batch) const override {
    batch.reserve(
        Batch::column_bytes<std::int64_t>(8 * (samples.count + std::ssize(samples.candidate_item))) +
        8 * Batch::kAlignment);
    add_sample_columns(samples, batch);
    batch.tokens = samples.count;
    const auto counts = batch.add<std::int64_t>("counts", {samples.count});
    const auto items = batch.add<std::int64_t>("items", {std::ssize(samples.candidate_item)});
    for (std::size_t b = 0; b < counts.size(); ++b) counts[b] = samples.candidates_of(b);
    for (std::size_t c = 0; c < items.size(); ++c)
      items[c] = samples.items[static_cast<std::size_t>(samples.candidate_item[c])];
  }
};

// Of so many global batches; all with -1.
Drawn drawn_by(Loader& loader, int batches) {
  Drawn all;
  while (const auto* loaded = loader.next()) {
    const auto positions = loaded->batch.values<std::int64_t>(kPositionColumn),
               counts = loaded->batch.values<std::int64_t>("counts"),
               items = loaded->batch.values<std::int64_t>("items");
    std::size_t c = 0;
    for (std::size_t b = 0; b < positions.size(); ++b) {
      Ids& of_anchor = all[{loaded->cursor.epoch, loaded->cursor.window, loaded->cursor.batch, positions[b]}];
      for (std::int64_t i = 0; i < counts[b]; ++i) of_anchor.push_back(items[c++]);
    }
    if (loaded->last_part && --batches == 0) break;
  }
  return all;
}

class DrawnNegatives : public testing::Test {
 protected:
  static DataOptions options(NegativeSource from = NegativeSource::popularity) {
    DataOptions options;
    options.history_length = 30;
    options.min_history = 3;
    options.window_seconds = 40;
    options.negatives = {.per_positive = 3, .from = from, .exclude_seen = true};
    return options;
  }
  SampleBuilder builder(const DataOptions& options) const { return {dataset_, options, items_}; }

  const small::Data data_ = small::write(small::random_events(21, {.users = 20, .longest = 40, .items = 60}));
  const Dataset dataset_{data_.folder};
  const Anchors anchors_ = find_anchors(dataset_, options(), {.fraction = 0.3});
  const std::shared_ptr<const TrainingItems> items_ =
      std::make_shared<const TrainingItems>(dataset_, anchors_.holdout, true);
};

// Trap: negatives that depend on the rank, the part, the thread, or on a restart.
TEST_F(DrawnNegatives, AreTheSameForAnyRanksPartsThreadsAndResumes) {
  const CandidatesLayout layout;
  const ScheduleOptions schedule{.batch_size = 9, .epochs = 2, .shuffle_fraction = 1};
  for (const bool share : {true, false}) {
    DataOptions data = options();
    data.negatives_share_history = share;
    const SampleBuilder samples = builder(data);
    const auto draw = [&](const LoaderOptions& loading, BatchCursor start, int batches) {
      Loader loader(samples, layout, {anchors_.training, schedule, start}, loading);
      return drawn_by(loader, batches);
    };
    const Drawn expected = draw({.workers = 1, .seed = 3}, {}, 12);
    std::size_t most = 0;
    for (const auto& [name, items] : expected) most = std::max(most, items.size());
    EXPECT_EQ(most, 4u);
    EXPECT_EQ(draw({.workers = 4, .division = {.part_tokens = 3}, .seed = 3}, {}, 12), expected);
    for (const int ranks : {2, 4}) {
      Drawn all;
      for (int rank = 0; rank < ranks; ++rank)
        all.merge(draw({.workers = 2, .division = {.ranks = ranks}, .rank = rank, .seed = 3}, {}, 12));
      EXPECT_EQ(all, expected) << ranks << " ranks";
    }
    Loader first(samples, layout, {anchors_.training, schedule}, {.seed = 3});
    Drawn resumed = drawn_by(first, 4);
    Loader again(samples, layout, {anchors_.training, schedule}, {.seed = 3});
    BatchCursor cursor;
    for (int i = 0; i < 4; ++i) cursor = again.next()->next;
    resumed.merge(draw({.seed = 3}, cursor, 8));
    EXPECT_EQ(resumed, expected);
    EXPECT_NE(draw({.seed = 4}, {}, 12), expected);
  }
}

TEST_F(DrawnNegatives, OfEvaluationsAreTheSameInEveryBatch) {
  const CandidatesLayout layout;
  const SampleBuilder samples = builder(options());
  const auto by_position = [&](std::int64_t batch_size, bool fixed) {
    Loader loader(samples, layout, {anchors_.training, {.batch_size = batch_size}},
                  {.seed = 3, .fixed_draws = fixed});
    std::map<std::int64_t, Ids> drawn;
    for (const auto& [name, items] : drawn_by(loader, -1)) drawn[name.back()] = items;
    return drawn;
  };
  EXPECT_EQ(by_position(5, true), by_position(9, true));
  EXPECT_NE(by_position(5, false), by_position(9, false));
  Ids drawn;
  for (const auto& [position, items] : by_position(5, true)) {
    samples.draw_negatives(BatchDraws(3), position, drawn);
    EXPECT_EQ(drawn, Ids(items.begin() + 1, items.end()));
  }
}

TEST_F(DrawnNegatives, BelongToPositivesAndHaveLabelZeroAndTheirAnchorsNameAndPlace) {
  for (const bool share : {true, false}) {
    DataOptions data = options();
    data.negatives_share_history = share;
    const auto positions = anchors_.training.first(40);
    const Samples samples = builder(data).build(positions);
    std::size_t b = 0;
    std::int64_t examples = 0;
    for (const std::int64_t position : positions) {
      const bool positive = (data_.at(position).action & kGood) != 0;
      ASSERT_EQ(samples.position[b], position);
      EXPECT_EQ(samples.label[b], positive ? 1 : 0);
      EXPECT_EQ(samples.candidates_of(b), share && positive ? 4 : 1);
      examples += positive ? 4 : 1;
      ++b;
      for (; !share && b < samples.position.size() && samples.position[b] == position; ++b)
        EXPECT_EQ(samples.label[b], 0);
    }
    EXPECT_EQ(static_cast<std::int64_t>(b), samples.count);
    SampleScratch scratch = builder(data).scratch();
    EXPECT_EQ(builder(data).examples(positions, scratch), examples);
    EXPECT_EQ(static_cast<std::int64_t>(samples.candidate_item.size()), examples);
  }
}

TEST_F(DrawnNegatives, AreDifferentItemsThatTheUserHasNotSeen) {
  for (const auto& [word, from] : kNegativeSources) {
    for (const bool exclude_seen : {true, false}) {
      DataOptions data = options(from);
      data.negatives.exclude_seen = exclude_seen;
      const SampleBuilder samples = builder(data);
      std::int64_t seen = 0;
      for (std::int64_t position = 0; position < data_.size(); ++position) {
        Ids drawn;
        samples.draw_negatives(BatchDraws(5), position, drawn);
        const bool positive = (data_.at(position).action & kGood) != 0;
        EXPECT_EQ(drawn.size(), positive ? 3u : 0u);
        EXPECT_EQ(std::set<std::int64_t>(drawn.begin(), drawn.end()).size(), drawn.size());
        for (const std::int64_t item : drawn) {
          EXPECT_NE(item, data_.at(position).item);
          EXPECT_GT(items_->positives_of(item), 0);
          for (std::int64_t p = data_.user_start(position); p < position; ++p)
            seen += data_.at(p).item == item ? 1 : 0;
        }
      }
      EXPECT_EQ(seen == 0, exclude_seen) << word;
    }
  }
}

// Trap: an endless search, or an excluded item, where hardly any item is allowed.
TEST_F(DrawnNegatives, AreFewerWhereTheUserHasSeenAllButOneItem) {
  std::vector<small::Event> events;
  for (std::int64_t i = 0; i < 1000; ++i)
    events.push_back({.user = 1, .time = i, .item = i, .action = kGood | kRankableBit});
  events.push_back({.user = 2, .time = 0, .item = 5000, .action = kGood | kRankableBit});
  const small::Data data = small::write(events, "seen");
  const Dataset dataset(data.folder);
  const auto items = std::make_shared<const TrainingItems>(dataset, Holdout{}, false);
  Ids drawn;
  SampleBuilder(dataset, options(), items).draw_negatives(BatchDraws(1), 999, drawn);
  EXPECT_EQ(drawn, Ids{5000});
}

// Trap: held-out events whose items become popular negatives.
TEST_F(DrawnNegatives, DoNotKnowHeldOutEvents) {
  ASSERT_TRUE(anchors_.holdout.in_time());
  small::Data altered = data_;
  std::int64_t changed = 0;
  for (small::Event& event : altered.events) {
    if (event.time < anchors_.holdout.time_begin) continue;
    event.item = 1000 + event.item % 2;
    ++changed;
  }
  ASSERT_GT(changed, 10);
  const Dataset dataset(small::write(altered.events, "altered").folder);
  const TrainingItems items(dataset, anchors_.holdout, true);
  EXPECT_TRUE(std::ranges::equal(items.items(), items_->items()));
  EXPECT_EQ(items.positives(), items_->positives());
  for (const std::int64_t item : items.items())
    EXPECT_EQ(items.positives_of(item), items_->positives_of(item));
  EXPECT_EQ(items.positives_of(1000), 0);
  EXPECT_EQ(items.of_day(1'000'000).end, items_->of_day(1'000'000).end);
}

// Pearson's statistic of counts against expectations, less its mean, in deviations of its distribution.
double deviations(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST_F(DrawnNegatives, FollowThePopularityOfItems) {
  constexpr int kDraws = 20'000;
  constexpr std::int64_t kUnseen = 900'000;  // an anchor of no item of the dataset
  for (const auto from : {NegativeSource::popularity, NegativeSource::uniform}) {
    const NegativeSampler negatives(dataset_, {.per_positive = 1, .from = from, .exclude_seen = false},
                                    items_);
    std::map<std::int64_t, double> count;
    for (std::int64_t name = 0; name < kDraws; ++name) {
      Ids drawn;
      negatives.draw(BatchDraws(11), {.name = name, .item = kUnseen}, drawn);
      ++count[drawn.at(0)];
    }
    std::vector<double> counts, expected, uniform;
    for (const std::int64_t item : items_->items()) {
      counts.push_back(count[item]);
      uniform.push_back(static_cast<double>(kDraws) / static_cast<double>(items_->items().size()));
      const double share =
          static_cast<double>(items_->positives_of(item)) / static_cast<double>(items_->positives());
      expected.push_back(from == NegativeSource::uniform ? uniform.back() : kDraws * share);
    }
    EXPECT_LT(std::abs(deviations(counts, expected)), 4);
    if (from == NegativeSource::popularity) {
      EXPECT_GT(deviations(counts, uniform), 50);
    }
  }
}

TEST(ItemsOfTheDay, AreThoseOfTheDayOrOfTheLatestBeforeIt) {
  constexpr std::int64_t kDay = 86'400;
  constexpr std::uint8_t kPositive = kGood | kRankableBit;
  const small::Data data = small::write({{1, -1, 1, kPositive},
                                         {1, 0, 2, kPositive},
                                         {2, kDay - 1, 3, kPositive},
                                         {2, kDay, 4, kPositive},
                                         {3, 3 * kDay, 5, kRankableBit | small::kBad},
                                         {3, 5 * kDay, 6, kPositive}});
  const Dataset dataset(data.folder);
  const TrainingItems items(dataset, {.time_begin = 5 * kDay}, true);
  const auto of_day = [&](std::int64_t time) {
    Ids found;
    const TrainingItems::Range range = items.of_day(time);
    for (std::int64_t i = range.begin; i < range.end; ++i) found.push_back(items.day_item(i));
    return found;
  };
  EXPECT_EQ(of_day(-5 * kDay), Ids{1}) << "the earliest";
  EXPECT_EQ(of_day(-1), Ids{1});
  EXPECT_EQ(of_day(100), (Ids{2, 3}));
  EXPECT_EQ(of_day(kDay), Ids{4});
  EXPECT_EQ(of_day(3 * kDay), Ids{4}) << "a day without positives";
  EXPECT_EQ(of_day(5 * kDay), Ids{4}) << "a day that is held out";
}

TEST(TrainingItems, NeedAPositive) {
  const small::Data data = small::write({{1, 0, 1, kRankableBit | small::kBad}});
  const Dataset dataset(data.folder);
  small::expect_error<UsageError>([&] { TrainingItems(dataset, {}, false); },
                                  {"no event with the label good"});
}

}  // namespace
}  // namespace hstu
