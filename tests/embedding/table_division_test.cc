#include "hstu/embedding/table_division.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include <gmock/gmock.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"
#include "sanitizers.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

std::string refusal(const TableConfig& table, RowOptimizerKind optimizer, int ranks) {
  try {
    divide_tables(std::span(&table, 1), optimizer, 0, ranks);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// z = 1, 2, ... with a probability proportional to z^-alpha, by rejection (Devroye, "Non-Uniform Random
// Variate Generation", X.6.1), up to 2^40.
std::int64_t zipf(RandomStream& random, double alpha) {
  const double b = std::pow(2.0, alpha - 1);
  while (true) {
    const double u = 1 - random.uniform(), v = random.uniform();
    const double z = std::floor(std::pow(u, -1 / (alpha - 1)));
    if (z > 0x1p40) continue;
    const double t = std::pow(1 + 1 / z, alpha - 1);
    if (v * z * (t - 1) / (b - 1) <= t / b) return static_cast<std::int64_t>(z);
  }
}

// With one hash for both, the ids of a rank would fill 1 place of `ranks` in the index of its table.
TEST(RowOwners, HashIdsApartFromTheIndexOfTheTable) {
  constexpr std::int64_t kIds = 1 << 17;
  for (const int ranks : {2, 7, 16, 64}) {
    const RowOwners owners{.rank = 3 % ranks, .ranks = ranks};
    std::vector<std::int64_t> low(64, 0), high(64, 0);
    std::int64_t owned = 0;
    for (std::int64_t id = 0; id < kIds; ++id) {
      if (!owners.owns(id)) continue;
      ++owned;
      ++low[mix64(static_cast<std::uint64_t>(id)) % 64];
      ++high[mix64(static_cast<std::uint64_t>(id)) >> 58];
    }
    // Six deviations of a binomial distribution.
    const double share = static_cast<double>(kIds) / ranks, in_place = share / 64;
    EXPECT_NEAR(static_cast<double>(owned), share, 6 * std::sqrt(share)) << ranks;
    for (std::size_t place = 0; place < 64; ++place) {
      EXPECT_NEAR(static_cast<double>(low[place]), in_place, 6 * std::sqrt(in_place)) << ranks;
      EXPECT_NEAR(static_cast<double>(high[place]), in_place, 6 * std::sqrt(in_place)) << ranks;
    }
  }
}

// Of the owner with the most, over the mean: rows that it has, rows that it sends for one step, and rows that
// it would send if an id were sent as often as it occurs. Every rank reads 65,536 ids of a zipf distribution
// (1.2).
struct Shares {
  double had, sent, occurrences;
};
Shares shares_of_zipf(int ranks) {
  const RowOwners owners{.ranks = ranks};
  const std::size_t n = static_cast<std::size_t>(ranks);
  std::vector<std::int64_t> had(n, 0), sent(n, 0), occurrences(n, 0);
  std::unordered_set<std::int64_t> all;
  RandomStream random{.key = 12};
  for (int rank = 0; rank < ranks; ++rank) {
    std::unordered_set<std::int64_t> of_rank;
    for (int i = 0; i < 65'536; ++i) {
      const std::int64_t id = zipf(random, 1.2);
      const auto owner = static_cast<std::size_t>(owners.owner(id));
      ++occurrences[owner];
      if (of_rank.insert(id).second) ++sent[owner];
      if (all.insert(id).second) ++had[owner];
    }
  }
  const auto most_over_mean = [](const std::vector<std::int64_t>& of_ranks) {
    const double sum =
        static_cast<double>(std::accumulate(of_ranks.begin(), of_ranks.end(), std::int64_t{0}));
    return static_cast<double>(*std::max_element(of_ranks.begin(), of_ranks.end())) *
           static_cast<double>(of_ranks.size()) / sum;
  };
  return {most_over_mean(had), most_over_mean(sent), most_over_mean(occurrences)};
}

TEST(RowOwners, AHotIdCostsOneRowForEachRankAndStep) {
  for (const int ranks : {8, kSanitized ? 16 : 64}) {
    const Shares shares = shares_of_zipf(ranks);
    EXPECT_LT(shares.had, 1.03) << ranks;
    EXPECT_LT(shares.sent, 1.12) << ranks;
    EXPECT_GT(shares.occurrences, 0.17 * ranks) << "the first id alone is 0.18 of all";
  }
}

TEST(RowOwners, DivideTheColumnsOfARowWithoutGaps) {
  for (const int ranks : {2, 3, 4, 7}) {
    const RowOwners owners{.ranks = ranks, .form = TableRanks::column};
    std::int64_t next = 0;
    for (int r = 0; r < ranks; ++r) {
      EXPECT_EQ(owners.first_column(r, 10), next);
      EXPECT_GE(owners.columns(r, 10), 1);
      next += owners.columns(r, 10);
    }
    EXPECT_EQ(next, 10);
  }
}

TEST(TableDivision, CopiesSmallTablesAndSplitsLargeAndLimitedOnes) {
  const std::vector<TableConfig> tables{{"small", 500, 512},
                                        {"large", 520, 512},
                                        {"limited", 10, 512, {.capacity = 5}},
                                        {.name = "told", .rows = 10, .dim = 512, .ranks = TableRanks::table}};
  const auto forms = [&](int rank, int ranks) {
    std::vector<TableRanks> found;
    for (const RowOwners& owners : divide_tables(tables, RowOptimizerKind::sgd, rank, ranks))
      found.push_back(owners.form);
    return found;
  };
  using enum TableRanks;
  EXPECT_EQ(forms(0, 2), (std::vector{copy, split, split, table}));
  EXPECT_EQ(forms(1, 2), forms(0, 2));
  EXPECT_EQ(forms(0, 3), (std::vector{split, split, split, table})) << "a copy costs a message to every rank";
}

TEST(TableDivision, PutsWholeTablesWhereTheLeastIs) {
  std::vector<TableConfig> tables;
  for (const std::int64_t rows : {10, 100, 40, 70}) {
    tables.push_back({std::to_string(rows), rows, 4});
    tables.back().ranks = TableRanks::table;
  }
  std::vector<int> homes;
  for (const RowOwners& owners : divide_tables(tables, RowOptimizerKind::sgd, 1, 2)) {
    homes.push_back(owners.home);
    EXPECT_EQ(owners.owns(5), owners.home == 1);
  }
  EXPECT_EQ(homes, (std::vector{0, 0, 1, 1}));  // 100 + 10 and 70 + 40
}

TEST(TableDivision, RefusesColumnsByName) {
  TableConfig table{"item", 1000, 4};
  table.ranks = TableRanks::column;
  EXPECT_EQ(refusal(table, RowOptimizerKind::adam, 4), "");
  EXPECT_THAT(refusal(table, RowOptimizerKind::adam, 5), HasSubstr("4 columns are too few for 5 ranks"));
  EXPECT_THAT(refusal(table, RowOptimizerKind::rowwise_adagrad, 2),
              HasSubstr("tables.item.optimizer = \"adagrad\""));
  EXPECT_EQ(refusal(table, RowOptimizerKind::rowwise_adagrad, 1), "");
  table.optimizer = RowOptimizerKind::adagrad;
  EXPECT_EQ(refusal(table, RowOptimizerKind::rowwise_adagrad, 2), "");
}

}  // namespace
}  // namespace hstu
