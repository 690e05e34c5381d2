#include <limits>

#include <gtest/gtest.h>

#include "embedding/support.h"
#include "hstu/rows/row_index.h"
#include "hstu/rows/unique.h"

namespace hstu {
namespace {

using namespace testing_embedding;
TEST(RowIndex, HoldsEveryIdThroughGrowth) {
  RowIndex index;
  EXPECT_EQ(index.find(0), RowIndex::kAbsent);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  Ids ids{0, -1, kMax, -kMax - 1};
  for (std::int64_t i = 0; i < 50'000; ++i) ids.push_back((i + 1) << 20);  // equal low bits
  for (std::size_t i = 0; i < ids.size(); ++i)
    ASSERT_EQ(index.find_or_insert(ids[i]), static_cast<std::int64_t>(i));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(index.find(ids[i]), static_cast<std::int64_t>(i));
    ASSERT_EQ(index.find_or_insert(ids[i]), static_cast<std::int64_t>(i));
  }
  EXPECT_EQ(index.size(), static_cast<std::int64_t>(ids.size()));
  EXPECT_EQ(index.find(12345), RowIndex::kAbsent);
}

TEST(Unique, KeepsFirstAppearanceOrderAndTheWayBack) {
  const UniqueIds result = unique(Ids{5, 3, 5, -1, 3, 9});
  EXPECT_EQ(result.ids, (Ids{5, 3, -1, 9}));
  EXPECT_EQ(result.index, (std::vector<std::int32_t>{0, 1, 0, 2, 1, 3}));
  EXPECT_TRUE(unique({}).ids.empty());
}

TEST(Unique, SumsGradientsOfEveryOccurrence) {
  const UniqueIds ids = unique(Ids{5, 3, 5, 5});
  const std::vector<float> gradients{1, 10, 2, 20, 4, 40, 8, 80};
  std::vector<float> sums(4, -1.0f);
  sum_by_row(ids, gradients.data(), 2, sums.data());
  EXPECT_EQ(sums, (std::vector<float>{13, 130, 2, 20}));
}

TEST(Unique, DuplicatesMakeOneUpdateWithTheSummedGradient) {
  // Adagrad tells them apart: two updates by g are not one update by 2 g.
  EmbeddingTable merged({"item", 10, 2}, {}, 1), by_hand({"item", 10, 2}, {}, 1);
  const UniqueIds ids = unique(Ids{7, 7});
  const std::vector<float> gradients{0.5f, -1.0f, 0.25f, 3.0f};
  std::vector<float> sums(2);
  sum_by_row(ids, gradients.data(), 2, sums.data());
  apply_gradients(merged, ids.ids, sums.data(), 0.1);
  const std::vector<float> sum{0.75f, 2.0f};
  apply_gradients(by_hand, Ids{7}, sum.data(), 0.1);
  EXPECT_EQ(eval_lookup(merged, {7}), eval_lookup(by_hand, {7}));
  EXPECT_EQ(rows_by_id(merged)[0].state[0], (0.75f * 0.75f + 4.0f) / 2.0f);
}

}  // namespace
}  // namespace hstu
