// Negatives from a catalogue: draws by name, and the columns that losses read.
#include "hstu/batching/catalogue_negatives.h"

#include <map>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kAbove24Bits = (std::int64_t{1} << 24) + 1, kLargeId = std::int64_t{1} << 40;

Ids drawn_by(const BatchDraws& draws, std::int64_t sample, std::int64_t token, std::size_t count) {
  Ids items(1000);
  std::iota(items.begin(), items.end(), 5);
  Ids drawn(count);
  CatalogueDraws(items).draw_own(draws, sample, token, drawn);
  return drawn;
}

// Nothing but names and the batch decides, so ranks, parts and a resume change nothing.
TEST(CatalogueDraws, AreFunctionsOfBatchSampleTokenAndDraw) {
  const BatchDraws draws(7, {.epoch = 1, .window = 0, .batch = 3}),
      next(7, {.epoch = 1, .window = 0, .batch = 4}), other_seed(8, {.epoch = 1, .window = 0, .batch = 3});
  const Ids first = drawn_by(draws, 40, 2, 8);
  EXPECT_EQ(drawn_by(draws, 40, 2, 8), first);
  EXPECT_EQ(drawn_by(draws, 40, 2, 3), Ids(first.begin(), first.begin() + 3))
      << "each draw has its own number";
  EXPECT_NE(drawn_by(draws, 41, 2, 8), first);
  EXPECT_NE(drawn_by(draws, 40, 3, 8), first);
  EXPECT_NE(drawn_by(next, 40, 2, 8), first);
  EXPECT_NE(drawn_by(other_seed, 40, 2, 8), first);
  Ids shared(8);
  CatalogueDraws({1, 2, 3, 4, 5, 6, 7, 8, 9}).draw_shared(draws, shared);
  Ids again(8);
  CatalogueDraws({1, 2, 3, 4, 5, 6, 7, 8, 9}).draw_shared(draws, again);
  EXPECT_EQ(shared, again);
}

TEST(CatalogueDraws, AreEvenAndKeepIdsOf64Bits) {
  const CatalogueDraws catalogue({3, kAbove24Bits, kLargeId});
  std::map<std::int64_t, int> times;
  for (std::int64_t sample = 0; sample < 1000; ++sample) {
    Ids drawn(9);
    catalogue.draw_own(BatchDraws(1), sample, 0, drawn);
    for (const std::int64_t i : drawn) ++times[catalogue.item(i)];
  }
  ASSERT_EQ(times.size(), 3u);
  for (const std::int64_t id : {std::int64_t{3}, kAbove24Bits, kLargeId}) {
    EXPECT_GT(times[id], 2800) << id;
    EXPECT_LT(times[id], 3200) << id;
  }
}

TEST(CatalogueDraws, RefuseACatalogueWithoutItems) {
  EXPECT_THROW(CatalogueDraws({}), Error);
}

TEST(CatalogueNegatives, PoolsCountTargetsOtherEventsAndDraws) {
  const ItemFrequencies frequencies({2, 7, kLargeId}, {1, 2, 5});
  const PoolItems pool = pool_items(Ids{kLargeId, 7, 7}, Ids{7, 4}, Ids{kAbove24Bits, 2, 2}, &frequencies);
  EXPECT_THAT(pool.ids, ElementsAre(2, 4, 7, kAbove24Bits, kLargeId));
  EXPECT_THAT(pool.occurrences, ElementsAre(0, 1, 3, 0, 1));
  EXPECT_THAT(pool.draws, ElementsAre(2, 0, 0, 1, 0));
  EXPECT_THAT(pool.frequency, ElementsAre(0.125f, 0, 0.25f, 0, 0.625f));
}

TEST(CatalogueNegatives, ColumnsNameRowsOfTheBatch) {
  const Ids items{1, 2, 4, 7, kAbove24Bits, kAbove24Bits + 1, kLargeId};
  Batch batch;
  add_pool_columns(pool_items(Ids{kLargeId, 7}, {}, Ids{kAbove24Bits}, nullptr), items, batch);
  add_sampled_index(Ids{kAbove24Bits + 1, 1}, Ids{2, 4, kLargeId, 1}, items, batch);
  const auto values = [&](std::string_view name) {
    const auto column = batch.values<std::int32_t>(name);
    return std::vector<std::int32_t>(column.begin(), column.end());
  };
  EXPECT_THAT(values(kPoolIndexColumn), ElementsAre(3, 4, 6));
  EXPECT_THAT(values(kPoolOccurrencesColumn), ElementsAre(1, 0, 1));
  EXPECT_THAT(values(kPoolDrawsColumn), ElementsAre(0, 1, 0));
  EXPECT_THAT(values(kSampledIndexColumn), ElementsAre(5, 1, 2, 0, 6, 0));
  Batch missing;
  EXPECT_THROW(add_sampled_index(Ids{3}, Ids{1}, items, missing), InternalError);
}

}  // namespace
}  // namespace hstu
