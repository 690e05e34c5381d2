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

// The CPU form goes through the intervals from left to right.
TEST(AttentionMask, KeysOfQueryAreDisjointIntervalsThatAscend) {
  for (const SampleMask& mask : some_masks()) {
    for (int i = 0; i < mask.n; ++i) {
      const Intervals keys = keys_of_query(mask, i);
      int end = keys.end0;
      for (const auto& [lo, hi] : {std::pair{keys.lo1, keys.hi1}, std::pair{keys.lo2, keys.hi2}}) {
        if (lo >= hi) continue;
        ASSERT_GE(lo, end) << describe(mask) << " " << i;
        end = hi;
      }
      ASSERT_LE(end, mask.n) << describe(mask) << " " << i;
    }
  }
}

TEST(AttentionMask, OfASampleClampsTargetsFirstAndContextsToTheRest) {
  const auto expect = [](int contexts, int targets, int c, int h) {
    const SampleMask mask = sample_mask(10, contexts, targets, 3, -1, 5);
    EXPECT_EQ(mask.c, c) << contexts << " " << targets;
    EXPECT_EQ(mask.h, h) << contexts << " " << targets;
    EXPECT_EQ(mask.left, kUnlimited);
    EXPECT_EQ(mask.right, 5);
  };
  expect(2, 3, 2, 7);
  expect(9, 3, 7, 7);
  expect(9, 30, 0, 0);
  expect(-1, -2, 0, 10);
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
      ASSERT_EQ(walk.step_of(walk[i]), i) << describe(mask);
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

// The backward pass counts the tiles of keys that add to a block of queries from the block's side, while the
// tiles go by theirs: a tile that adds without being counted, or does not add, makes others wait for ever.
TEST(AttentionMask, TilesOfKeysVisitTheBlocksOfQueriesThatSeeThem) {
  constexpr int kTile = 8, kBlock = 4;
  std::vector<SampleMask> masks = some_masks();
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    const auto window = [&] { return below(4) == 0 ? kUnlimited : below(below(2) == 0 ? 5 : 60); };
    const int n = 1 + below(90), h = n - (below(3) == 0 ? 0 : below(n + 1));
    masks.push_back({n, below(3) == 0 ? 0 : below(h + 1), h, 1 + below(40), window(), window()});
  }
  for (const SampleMask& mask : masks) {
    const auto size = static_cast<std::size_t>(mask.n);
    std::vector<std::vector<int>> tiles_of_block(size), visitors(size);
    for (int block = 0; block * kBlock < mask.n; ++block) {
      const int begin = block * kBlock;
      const BlockWalk tiles(keys_of_queries(mask, begin, std::min(mask.n, begin + kBlock)).any, kTile);
      for (int i = 0; i < tiles.count(); ++i)
        tiles_of_block[static_cast<std::size_t>(block)].push_back(tiles[i]);
    }
    for (int tile = 0; tile * kTile < mask.n; ++tile) {
      const int begin = tile * kTile;
      const BlockWalk blocks(queries_of_keys(mask, begin, std::min(mask.n, begin + kTile)).any, kBlock);
      ASSERT_GT(blocks.count(), 0) << describe(mask);
      for (int i = 0; i < blocks.count(); ++i) visitors[static_cast<std::size_t>(blocks[i])].push_back(tile);
    }
    ASSERT_EQ(tiles_of_block, visitors) << describe(mask);
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
