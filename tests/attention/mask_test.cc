#include "hstu/attention/mask.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "attention/sees.h"

namespace hstu {
namespace {

std::vector<SampleMask> some_masks() {
  std::vector<SampleMask> masks;
  std::mt19937 random(7);
  for (const int n : {1, 2, 5, 17, 63, 64, 65, 100, 130}) {
    for (const int left : {0, 1, 7, 64, kUnlimited}) {
      for (const int right : {0, 3, kUnlimited}) {
        for (int repeat = 0; repeat < 4; ++repeat) {
          const int targets = repeat == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(n + 1));
          const int h = n - targets;
          const int contexts = repeat < 2 ? 0 : static_cast<int>(random() % static_cast<unsigned>(h + 1));
          masks.push_back({n, contexts, h, 1 + static_cast<int>(random() % 9), left, right});
        }
      }
    }
  }
  return masks;
}

TEST(AttentionMask, KeysOfQueryAndQueriesOfKeySayWhatTheDefinitionSays) {
  for (const SampleMask& mask : some_masks()) {
    for (int i = 0; i < mask.n; ++i) {
      for (int j = 0; j < mask.n; ++j) {
        ASSERT_EQ(keys_of_query(mask, i).contains(j), sees(mask, i, j))
            << describe(mask) << " " << i << " " << j;
        ASSERT_EQ(queries_of_key(mask, j).contains(i), sees(mask, i, j))
            << describe(mask) << " " << i << " " << j;
      }
    }
  }
}

TEST(AttentionMask, EveryQuerySeesItself) {
  for (const SampleMask& mask : some_masks())
    for (int i = 0; i < mask.n; ++i)
      EXPECT_TRUE(keys_of_query(mask, i).contains(i)) << describe(mask) << " " << i;
}

// Blocks of `size` of the other side for every run of `run` rows.
void check_coverage(const SampleMask& mask, int run, int size, bool of_queries) {
  for (int begin = 0; begin < mask.n; ++begin) {
    const int end = std::min(mask.n, begin + run);
    const Coverage all = of_queries ? keys_of_queries(mask, begin, end) : queries_of_keys(mask, begin, end);
    const BlockWalk walk(all.any, size);
    std::vector<int> visits(static_cast<std::size_t>(mask.n / size + 2), 0);
    for (int i = 0; i < walk.count(); ++i) {
      ASSERT_LT(walk[i] * size, mask.n) << describe(mask);
      if (i > 0) {
        ASSERT_LT(walk[i - 1], walk[i]) << describe(mask);
      }
      ++visits[static_cast<std::size_t>(walk[i])];
    }
    for (int row = begin; row < end; ++row) {
      for (int x = 0; x < mask.n; ++x) {
        const bool seen = of_queries ? sees(mask, row, x) : sees(mask, x, row);
        if (seen) {
          ASSERT_EQ(visits[static_cast<std::size_t>(x / size)], 1)
              << describe(mask) << " " << row << " " << x;
        }
        if (x >= all.full_lo && x < all.full_hi) {
          ASSERT_TRUE(seen) << describe(mask) << " " << row << " " << x;
        }
      }
    }
  }
}

TEST(AttentionMask, BlocksOfARunOfRowsHoldAllTheySeeOnceAndFullOnesNothingElse) {
  for (const SampleMask& mask : some_masks()) {
    for (const int run : {1, 16}) {
      check_coverage(mask, run, 8, true);
      check_coverage(mask, run, 8, false);
    }
  }
}

TEST(AttentionMask, ACausalTileVisitsNothingBeyondItsDiagonal) {
  const SampleMask causal{1000, 0, 1000, 1, kUnlimited, 0};
  const Coverage all = keys_of_queries(causal, 128, 256);
  EXPECT_EQ(BlockWalk(all.any, 64).count(), 4);
  EXPECT_EQ(all.full_hi, 129);
}

TEST(AttentionMask, AWindowSkipsWhatLiesBeforeItButNotTheContexts) {
  const SampleMask window{1000, 10, 1000, 1, 100, 0};
  const BlockWalk walk(keys_of_queries(window, 512, 576).any, 64);
  ASSERT_EQ(walk.count(), 4);
  EXPECT_EQ(walk[0], 0);
  EXPECT_EQ(walk[1], 6);
  EXPECT_EQ(walk[3], 8);
}

}  // namespace
}  // namespace hstu
