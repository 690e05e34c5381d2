#include "hstu/batching/shuffle.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace hstu {
namespace {

using Positions = std::vector<std::int64_t>;

Positions shuffled(std::size_t n, double fraction, std::uint64_t seed = 1, std::int64_t epoch = 0,
                   std::int64_t window = 0) {
  Positions positions(n);
  std::iota(positions.begin(), positions.end(), 0);
  shuffle_window(positions, fraction, seed, epoch, window);
  return positions;
}

TEST(Shuffle, IsAPermutationThatSeedEpochAndWindowChange) {
  const Positions first = shuffled(1000, 1);
  EXPECT_EQ(first, shuffled(1000, 1));
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  Positions sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, shuffled(1000, 0));
  EXPECT_NE(first, shuffled(1000, 1, 2));
  EXPECT_NE(first, shuffled(1000, 1, 1, 1));
  EXPECT_NE(first, shuffled(1000, 1, 1, 0, 1));
  EXPECT_NE(shuffled(1000, 1, 1, 0, 1), shuffled(1000, 1, 1, 1, 0));
}

TEST(Shuffle, NothingLeavesItsRun) {
  const Positions positions = shuffled(1003, 0.1);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(positions[i]) / 100, i / 100);
  }
  EXPECT_FALSE(std::is_sorted(positions.begin(), positions.begin() + 100));
  EXPECT_NE(shuffled(1003, 0.1), shuffled(1003, 1));
}

TEST(Shuffle, RoundsRunsHalfToEvenAndToAtLeastOne) {
  EXPECT_EQ(shuffled(100, 0.001), shuffled(100, 0));  // runs of one
  const Positions pairs = shuffled(10, 0.25);         // 2.5 rounds to 2
  for (std::size_t i = 0; i < pairs.size(); ++i) EXPECT_EQ(static_cast<std::size_t>(pairs[i]) / 2, i / 2);
}

TEST(Shuffle, TinyWindowsStay) {
  EXPECT_EQ(shuffled(0, 1), Positions{});
  EXPECT_EQ(shuffled(1, 1), Positions{0});
}

TEST(Shuffle, EveryPlaceIsAboutEquallyLikely) {
  constexpr std::size_t n = 5;
  std::vector<int> counts(n * n);
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    const Positions positions = shuffled(n, 1, seed);
    for (std::size_t i = 0; i < n; ++i) ++counts[i * n + static_cast<std::size_t>(positions[i])];
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

}  // namespace
}  // namespace hstu
