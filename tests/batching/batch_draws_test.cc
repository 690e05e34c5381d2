#include "hstu/batching/batch_draws.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "batching/small_data.h"
#include "hstu/batching/anchors.h"
#include "hstu/batching/loader.h"

namespace hstu {
namespace {

// A layout with two negatives for each sample, of 1,000 items.
class NegativesLayout final : public BatchLayout {
 public:
  void lay_out(const Samples& samples, LayoutScratch& /*scratch*/, Batch& batch) const override {
    add_sample_columns(samples, batch);
    batch.tokens = samples.count;
    const BatchDraws draws = samples.draws.of("negatives");
    const auto column = batch.add<std::int64_t>("negatives", {samples.count, 2});
    for (std::size_t b = 0; b < static_cast<std::size_t>(samples.count); ++b)
      for (std::int64_t i = 0; i < 2; ++i)
        column[2 * b + static_cast<std::size_t>(i)] = draws.below(1000, samples.position[b], 0, i);
  }
};
using Negatives = std::map<std::vector<std::int64_t>, std::vector<std::int64_t>>;  // by cursor and position

// Of so many global batches.
Negatives negatives_of(Loader& loader, int batches) {
  Negatives all;
  while (const auto* loaded = loader.next()) {
    const auto positions = loaded->batch.values<std::int64_t>(kPositionColumn);
    const auto drawn = loaded->batch.values<std::int64_t>("negatives");
    const BatchCursor& at = loaded->cursor;
    for (std::size_t b = 0; b < positions.size(); ++b)
      all[{at.epoch, at.window, at.batch, positions[b]}] = {drawn[2 * b], drawn[2 * b + 1]};
    if (loaded->last_part && --batches == 0) break;
  }
  return all;
}

class DrawsOfBatches : public testing::Test {
 protected:
  static DataOptions options() {
    DataOptions options;
    options.history_length = 30;
    options.min_history = 3;
    options.window_seconds = 40;
    return options;
  }
  const small::Data data_ = small::write(small::random_events(21, {.users = 20}));
  const Dataset dataset_{data_.folder};
  const SampleBuilder builder_{dataset_, options()};
  const Anchors anchors_ = find_anchors(dataset_, options(), {.fraction = 0.3});
};

// Trap: negatives that depend on the rank, the part, the thread, or on a restart.
TEST_F(DrawsOfBatches, LayoutsDrawTheSameForAnyRanksPartsThreadsAndResumes) {
  const NegativesLayout layout;
  const ScheduleOptions schedule{.batch_size = 9, .epochs = 2, .shuffle_fraction = 1};
  const auto draw = [&](const LoaderOptions& options, BatchCursor start, int batches) {
    Loader loader(builder_, layout, {anchors_.training, schedule, start}, options);
    return negatives_of(loader, batches);
  };
  const Negatives expected = draw({.workers = 1, .seed = 3}, {}, 12);
  EXPECT_EQ(draw({.workers = 4, .division = {.part_tokens = 3}, .seed = 3}, {}, 12), expected);
  for (const int ranks : {2, 4}) {
    Negatives all;
    for (int rank = 0; rank < ranks; ++rank)
      all.merge(draw({.workers = 2, .division = {.ranks = ranks}, .rank = rank, .seed = 3}, {}, 12));
    EXPECT_EQ(all, expected) << ranks << " ranks";
  }
  Loader first(builder_, layout, {anchors_.training, schedule}, {.seed = 3});
  Negatives resumed = negatives_of(first, 4);
  BatchCursor cursor;
  Loader again(builder_, layout, {anchors_.training, schedule}, {.seed = 3});
  for (int i = 0; i < 4; ++i) cursor = again.next()->next;
  resumed.merge(draw({.seed = 3}, cursor, 8));
  EXPECT_EQ(resumed, expected);
  EXPECT_NE(draw({.seed = 4}, {}, 12), expected);
}

TEST_F(DrawsOfBatches, EvaluationsDrawTheSameForASampleInEveryBatch) {
  const NegativesLayout layout;
  const auto by_position = [&](std::int64_t batch_size, bool fixed) {
    Loader loader(builder_, layout, {anchors_.training, {.batch_size = batch_size}},
                  {.seed = 3, .fixed_draws = fixed});
    std::map<std::int64_t, std::vector<std::int64_t>> drawn;
    for (const auto& [name, values] : negatives_of(loader, -1)) drawn[name.back()] = values;
    return drawn;
  };
  EXPECT_EQ(by_position(5, true), by_position(9, true));
  EXPECT_NE(by_position(5, false), by_position(9, false));
}

TEST(BatchDraws, AreUniformAndDifferByPurpose) {
  const BatchDraws draws(7, {1, 2, 3});
  std::vector<int> counts(10);
  int equal = 0;
  for (std::int64_t position = 0; position < 10'000; ++position) {
    const std::int64_t x = draws.of("negatives").below(10, position, 4, 0);
    ASSERT_TRUE(x >= 0 && x < 10);
    ++counts[static_cast<std::size_t>(x)];
    equal += x == draws.of("mask").below(10, position, 4, 0) ? 1 : 0;
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // five deviations
  EXPECT_NEAR(equal, 1000, 150);
  EXPECT_EQ(draws.below(1, 5, 0, 0), 0);
}

}  // namespace
}  // namespace hstu
