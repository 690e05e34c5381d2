#include "hstu/attention/visible_pairs.h"

#include <random>

#include <gtest/gtest.h>

#include "attention/sees.h"

namespace hstu {
namespace {

// Of the queries from `first` on.
std::int64_t counted(const SampleMask& m, int first = 0) {
  std::int64_t pairs = 0;
  for (int i = first; i < m.n; ++i)
    for (int j = 0; j < m.n; ++j) pairs += sees(m, i, j) ? 1 : 0;
  return pairs;
}

TEST(VisiblePairs, AreWhatCountingPairByPairGives) {
  std::mt19937 random(5);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  const auto window = [&] { return below(3) == 0 ? kUnlimited : below(below(2) == 0 ? 5 : 80); };
  for (int i = 0; i < 4000; ++i) {
    const int n = below(70), h = n - (below(3) == 0 ? 0 : below(n + 1));
    const SampleMask mask{n,        below(3) == 0 ? 0 : below(h + 1), h, 1 + below(40),
                          window(), below(2) == 0 ? 0 : window()};
    ASSERT_EQ(visible_pairs(mask), counted(mask)) << describe(mask);
    const int queries = below(n + 1);
    ASSERT_EQ(visible_pairs(mask, queries), counted(mask, n - queries))
        << queries << " queries, " << describe(mask);
  }
}

TEST(VisiblePairs, OfLongSamplesDoNotOverflow) {
  const std::int64_t n = 1 << 28;
  EXPECT_EQ(visible_pairs({1 << 28, 0, 1 << 28, 1, kUnlimited, kUnlimited}), n * n);
  EXPECT_EQ(visible_pairs({1 << 28, 0, 1 << 28, 1, kUnlimited, 0}), n * (n + 1) / 2);
}

// Publications count half of the square of a causal mask, without the other half of its diagonal.
TEST(ConventionalPairs, CountHalfOfACausalSquareAndAreExactOtherwise) {
  EXPECT_EQ(conventional_pairs({100, 0, 100, 1, kUnlimited, 0}), 5000);
  EXPECT_EQ(conventional_pairs({100, 0, 100, 1, kUnlimited, kUnlimited}), 10000);
  EXPECT_EQ(conventional_pairs({100, 0, 100, 1, 10, 0}), 100 * 11 - 55);
  // 10 contexts, 70 of history, 20 targets that see themselves: L (c + h) + t - h^2 / 2
  EXPECT_EQ(conventional_pairs({100, 10, 80, 1, kUnlimited, 0}), 100 * 80 + 20 - 70 * 70 / 2);
}

}  // namespace
}  // namespace hstu
