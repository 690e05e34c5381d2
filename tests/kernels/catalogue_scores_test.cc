// Counting and keeping items against a full sort of all scores, and the bits of scores.
#include "hstu/kernels/catalogue_scores.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/kernels/loops.h"

namespace hstu::kernels {
namespace {

using Ids = std::vector<std::int64_t>;

// A catalogue and queries. Values of few levels make many equal scores.
struct CatalogueCase {
  std::int64_t width = 1;
  Ids ids;
  std::vector<float> rows;
  std::int64_t queries = 1;
  std::vector<float> vectors;
  Ids offsets, excluded, targets;

  CatalogueItems items(std::int64_t begin, std::int64_t end) const {
    return {.n = end - begin, .width = width, .rows = rows.data() + begin * width, .ids = ids.data() + begin};
  }
  CatalogueQueries asked() const {
    return {.n = queries,
            .vectors = vectors.data(),
            .excluded_offsets = offsets.empty() ? nullptr : offsets.data(),
            .excluded = excluded.data()};
  }
  bool excludes(std::int64_t q, std::int64_t id) const {
    if (offsets.empty()) return false;
    const auto at = static_cast<std::size_t>(q);
    return std::binary_search(excluded.begin() + offsets[at], excluded.begin() + offsets[at + 1], id);
  }
};

CatalogueCase random_case(std::uint64_t seed) {
  RandomStream random{seed};
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random.uniform() * static_cast<double>(n));
  };
  CatalogueCase c;
  const std::int64_t n = 1 + below(seed % 50 == 0 ? 1500 : 40);
  c.width = 1 + below(9);
  std::int64_t id = below(3) == 0 ? (std::int64_t{1} << 40) : below(5);
  for (std::int64_t i = 0; i < n; ++i) c.ids.push_back(id += 1 + below(3));
  const bool with_ties = below(4) != 0;
  const auto fill = [&](std::vector<float>& values, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(with_ties ? static_cast<float>(below(3) - 1) : static_cast<float>(random.normal()));
  };
  fill(c.rows, n * c.width);
  c.queries = 1 + below(seed % 50 == 0 ? 100 : 4);
  fill(c.vectors, c.queries * c.width);
  const bool excludes = below(3) != 0;
  if (excludes) c.offsets.push_back(0);
  for (std::int64_t q = 0; q < c.queries; ++q) {
    c.targets.push_back(c.ids[static_cast<std::size_t>(below(n))]);
    if (!excludes) continue;
    std::set<std::int64_t> excluded;  // some are not in the catalogue, one may be the target
    for (std::int64_t i = below(6); i > 0; --i) excluded.insert(c.ids.front() - 2 + below(3 * n));
    c.excluded.insert(c.excluded.end(), excluded.begin(), excluded.end());
    c.offsets.push_back(std::ssize(c.excluded));
  }
  return c;
}

// All items of a query in order. The sums are those of products: ascending, one rounding a step.
std::vector<ScoredItem> sorted_items(const CatalogueCase& c, std::int64_t q, bool with_excluded_target) {
  std::vector<ScoredItem> all;
  for (std::size_t i = 0; i < c.ids.size(); ++i) {
    const bool target = with_excluded_target && c.ids[i] == c.targets[static_cast<std::size_t>(q)];
    if (c.excludes(q, c.ids[i]) && !target) continue;
    float score = 0;
    for (std::int64_t e = 0; e < c.width; ++e)
      score = std::fma(c.vectors[static_cast<std::size_t>(q * c.width + e)],
                       c.rows[i * static_cast<std::size_t>(c.width) + static_cast<std::size_t>(e)], score);
    all.push_back({score, c.ids[i]});
  }
  std::sort(all.begin(), all.end(), [](const ScoredItem& a, const ScoredItem& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  });
  return all;
}

// The ranks without the excluded items, then those among all, of the catalogue in blocks of `block` items.
std::pair<Ids, Ids> ranks_of(const CatalogueCase& c, std::int64_t block) {
  const auto n = static_cast<std::int64_t>(c.ids.size());
  std::vector<float> scores(static_cast<std::size_t>(c.queries));
  std::vector<std::uint8_t> found(scores.size());
  Ids better(scores.size(), 0), excluded(scores.size(), 0);
  for (std::int64_t i = 0; i < n; i += block)
    target_scores({.items = c.items(i, std::min(n, i + block)),
                   .queries = c.asked(),
                   .targets = c.targets.data(),
                   .scores = scores.data(),
                   .found = found.data()},
                  HostStream{});
  EXPECT_EQ(std::count(found.begin(), found.end(), 1), c.queries);
  for (std::int64_t i = 0; i < n; i += block)
    count_better({.items = c.items(i, std::min(n, i + block)),
                  .queries = c.asked(),
                  .targets = c.targets.data(),
                  .scores = scores.data(),
                  .better = better.data(),
                  .excluded_better = excluded.data()},
                 HostStream{});
  for (std::size_t q = 0; q < better.size(); ++q) excluded[q] += ++better[q];
  return {better, excluded};
}

TEST(CatalogueScores, RanksByCountingAreThoseOfAFullSort) {
  for (std::uint64_t seed = 0; seed < 10000; ++seed) {
    const CatalogueCase c = random_case(seed);
    CatalogueCase with_all = c;
    with_all.offsets.clear();
    std::pair<Ids, Ids> expected;
    for (std::int64_t q = 0; q < c.queries; ++q) {
      const auto rank_in = [&](const std::vector<ScoredItem>& sorted) {
        const auto at = std::find_if(sorted.begin(), sorted.end(), [&](const ScoredItem& item) {
          return item.id == c.targets[static_cast<std::size_t>(q)];
        });
        return at - sorted.begin() + 1;
      };
      expected.first.push_back(rank_in(sorted_items(c, q, true)));
      expected.second.push_back(rank_in(sorted_items(with_all, q, true)));
    }
    const auto n = static_cast<std::int64_t>(c.ids.size());
    ASSERT_EQ(ranks_of(c, n), expected) << "case " << seed;
    ASSERT_EQ(ranks_of(c, 1 + n / 3), expected) << "case " << seed;
  }
}

TEST(CatalogueScores, TheFirstItemsAreThoseOfAFullSortInBlocksOfAnyOrder) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const CatalogueCase c = random_case(seed);
    const auto n = static_cast<std::int64_t>(c.ids.size());
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{3}, n, n + 5}) {
      TopItems top(c.queries, k);
      const std::int64_t block = 1 + n / 3;
      for (std::int64_t i = (n - 1) / block * block; i >= 0; i -= block)  // the last block first
        top.add(c.items(i, std::min(n, i + block)), c.asked());
      const std::vector<std::vector<ScoredItem>> lists = top.take();
      for (std::int64_t q = 0; q < c.queries; ++q) {
        std::vector<ScoredItem> expected = sorted_items(c, q, false);
        if (std::ssize(expected) > k) expected.resize(static_cast<std::size_t>(k));
        ASSERT_EQ(lists[static_cast<std::size_t>(q)], expected) << "case " << seed << ", k " << k;
      }
    }
  }
}

// A long list of one query is cut many times before it ends.
TEST(CatalogueScores, AListThatFillsItsBufferOftenKeepsTheFirstItems) {
  CatalogueCase c;
  constexpr std::int64_t kItems = 20000;
  for (std::int64_t i = 0; i < kItems; ++i) {
    c.ids.push_back(i);
    c.rows.push_back(static_cast<float>(i / 7));  // each item is before the earlier ones, but for ties
  }
  c.vectors = {1};
  c.targets = {0};
  TopItems top(1, 100);
  top.add(c.items(0, kItems), c.asked());
  std::vector<ScoredItem> expected = sorted_items(c, 0, false);
  expected.resize(100);
  EXPECT_EQ(top.take()[0], expected);
}

// Widths and places that give tiles of every shape; the bits are compared, not the values.
TEST(CatalogueScores, AScoreHasTheSameBitsInEveryBlockAndInstructionSet) {
  constexpr std::int64_t kItems = 700;
  for (const std::int64_t width : {1, 25, 50, 300}) {
    RandomStream random{static_cast<std::uint64_t>(width)};
    CatalogueCase c;
    c.width = width;
    c.queries = 53;
    for (std::int64_t i = 0; i < kItems; ++i) c.ids.push_back(3 * i);
    for (std::int64_t i = 0; i < kItems * width; ++i) c.rows.push_back(static_cast<float>(random.normal()));
    for (std::int64_t i = 0; i < c.queries * width; ++i)
      c.vectors.push_back(static_cast<float>(random.normal()));
    std::vector<std::vector<ScoredItem>> expected;
    for (std::int64_t q = 0; q < c.queries; ++q) {
      c.targets.push_back(c.ids[static_cast<std::size_t>(q)]);
      expected.push_back(sorted_items(c, q, false));
    }
    for (const auto& [word, set] : kInstructionSets) {
      if (!is_usable(set)) continue;
      SCOPED_TRACE(word);
      const InstructionSet before = instruction_set();
      use_instruction_set(set);
      for (const std::int64_t block : {std::int64_t{1}, std::int64_t{17}, kItems}) {
        TopItems top(c.queries, kItems);
        for (std::int64_t i = 0; i < kItems; i += block)
          top.add(c.items(i, std::min(kItems, i + block)), c.asked());
        const auto lists = top.take();
        for (std::size_t q = 0; q < lists.size(); ++q) {
          ASSERT_EQ(lists[q].size(), expected[q].size());
          for (std::size_t i = 0; i < lists[q].size(); ++i)
            ASSERT_EQ(std::bit_cast<std::uint32_t>(lists[q][i].score),
                      std::bit_cast<std::uint32_t>(expected[q][i].score))
                << "width " << width << ", block " << block;
        }
      }
      use_instruction_set(before);
    }
  }
}

TEST(CatalogueScores, AnUndefinedScoreNeverImprovesARankAndIsInNoList) {
  CatalogueCase c;
  c.ids = {1, 2, 3, 4};
  c.rows = {1, std::numeric_limits<float>::quiet_NaN(), 3, 2};
  c.vectors = {1};
  c.targets = {4};
  EXPECT_EQ(ranks_of(c, 4).first, Ids{3});  // behind item 3, and behind what has no score
  TopItems top(1, 4);
  top.add(c.items(0, 4), c.asked());
  EXPECT_EQ(top.take()[0], (std::vector<ScoredItem>{{3, 3}, {2, 4}, {1, 1}}));

  c.targets = {2};
  EXPECT_EQ(ranks_of(c, 4).first, Ids{4});  // a target without a score is the last
}

}  // namespace
}  // namespace hstu::kernels
