// The distributions against their definitions, and the log that is made of them.
#include "hstu/synthetic/random_distribution.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/synthetic/generate_random.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

std::vector<std::int64_t> draws(const Distribution& distribution, int n = 100'000) {
  RandomStream random{7};
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) values.push_back(distribution.draw(random));
  std::sort(values.begin(), values.end());
  return values;
}
double share(const std::vector<std::int64_t>& values, const std::function<bool(std::int64_t)>& holds) {
  return static_cast<double>(std::count_if(values.begin(), values.end(), holds)) /
         static_cast<double>(values.size());
}
double mean(const std::vector<std::int64_t>& values) {
  double sum = 0;
  for (const std::int64_t v : values) sum += static_cast<double>(v);
  return sum / static_cast<double>(values.size());
}

// The published lengths: 16.9 % at 4,096, P(1) = 17.9 %, median 18, mean 866.8.
TEST(RandomDistribution, ZipfHasTheBenchmarksLengths) {
  const auto v = draws({.kind = DistributionKind::zipf, .low = 1, .high = 4096, .alpha = 1.2});
  EXPECT_NEAR(share(v, [](std::int64_t x) { return x == 4096; }), 0.169, 0.004);
  EXPECT_NEAR(share(v, [](std::int64_t x) { return x == 1; }), 0.179, 0.004);
  EXPECT_NEAR(static_cast<double>(v[v.size() / 2]), 18, 1);
  EXPECT_NEAR(mean(v), 866.8, 15);
}

// Ids without a bound: P(0) = 5.5 %, 32.7 % above 5e7.
TEST(RandomDistribution, ZipfWithoutABoundHasALongTail) {
  const auto v = draws({.kind = DistributionKind::zipf, .alpha = 1.05});
  EXPECT_NEAR(share(v, [](std::int64_t x) { return x == 0; }), 0.055, 0.003);
  EXPECT_NEAR(share(v, [](std::int64_t x) { return x > 50'000'000; }), 0.327, 0.006);
  EXPECT_GE(v.front(), 0);
}

TEST(RandomDistribution, BoundedZipfHasItsProbabilities) {
  for (const double alpha : {0.7, 1.0, 1.6}) {
    const auto v = draws({.kind = DistributionKind::bounded_zipf, .low = 3, .high = 8, .alpha = alpha});
    double whole = 0;
    for (int k = 1; k <= 5; ++k) whole += std::pow(k, -alpha);
    for (int k = 1; k <= 5; ++k) {
      EXPECT_NEAR(share(v, [&](std::int64_t x) { return x == k + 2; }), std::pow(k, -alpha) / whole, 0.006)
          << k;
    }
  }
}

// Of ids: none below the end has more than its share, and a table of 2^63 rows has the same head.
TEST(RandomDistribution, BoundedZipfOfAFlatTailPilesNothingUpAtItsEnd) {
  const auto v = draws({.kind = DistributionKind::bounded_zipf, .low = 0, .high = 1000, .alpha = 1.05});
  double whole = 0;
  for (int k = 1; k <= 1000; ++k) whole += std::pow(k, -1.05);
  const auto expected = [&](int begin, int end) {
    double sum = 0;
    for (int k = begin; k < end; ++k) sum += std::pow(k + 1, -1.05) / whole;
    return sum;
  };
  const auto expect_part = [&](int begin, int end) {
    EXPECT_NEAR(share(v, [&](std::int64_t x) { return x >= begin && x < end; }), expected(begin, end), 0.006)
        << begin;
  };
  for (const auto& [begin, end] : {std::pair(0, 1), {1, 10}, {10, 100}, {100, 990}, {990, 1000}})
    expect_part(begin, end);
  EXPECT_LT(v.back(), 1000);
  const auto open = draws({.kind = DistributionKind::bounded_zipf, .low = 0, .alpha = 1.05});
  EXPECT_NEAR(share(open, [](std::int64_t x) { return x == 0; }), 0.055, 0.003);
  EXPECT_NEAR(share(open, [](std::int64_t x) { return x > 50'000'000; }), 0.327, 0.006);
}

TEST(RandomDistribution, UniformLeavesOutItsEnd) {
  const auto v = draws({.kind = DistributionKind::uniform, .low = 2, .high = 6});
  EXPECT_EQ(v.front(), 2);
  EXPECT_EQ(v.back(), 5);
  EXPECT_NEAR(mean(v), 3.5, 0.02);
}

TEST(RandomDistribution, NormalAndLognormalHaveTheirMeansAndBounds) {
  const auto normal =
      draws({.kind = DistributionKind::normal, .low = 0, .high = 1000, .mean = 400, .std = 50});
  EXPECT_NEAR(mean(normal), 400, 1);
  const auto clamped =
      draws({.kind = DistributionKind::normal, .low = 390, .high = 410, .mean = 400, .std = 50});
  EXPECT_EQ(clamped.front(), 390);
  EXPECT_EQ(clamped.back(), 410);
  const auto lognormal =
      draws({.kind = DistributionKind::lognormal, .low = 0, .high = 1'000'000, .mean = 400, .std = 0});
  EXPECT_NEAR(mean(lognormal), 400, 4);
  double squares = 0;
  for (const std::int64_t x : lognormal) squares += std::pow(static_cast<double>(x) - 400, 2);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(lognormal.size())), 200, 6);
}

TEST(RandomDistribution, RefusesWhatItCannotDraw) {
  const auto refused = [](const Distribution& d) {
    EXPECT_THROW(check_distribution(d, "--lengths"), UsageError);
  };
  refused({.kind = DistributionKind::uniform, .low = 3, .high = 3});
  refused({.kind = DistributionKind::normal, .high = 9, .mean = 3, .std = 0});
  refused({.kind = DistributionKind::lognormal, .high = 9, .mean = 0});
  refused({.kind = DistributionKind::zipf, .high = 9, .alpha = 1});
  refused({.kind = DistributionKind::zipf, .low = -1, .high = 9});
}

TEST(GenerateRandom, HasTheSameBytesEveryTimeAndOtherOnesForAnotherSeed) {
  const Path folder = temporary_folder();
  RandomOptions options{.users = 50, .output = folder / "a"};
  options.lengths.high = 40;
  const RandomCounts counts = generate_random(options);
  EXPECT_EQ(counts.users, 50);
  EXPECT_LE(counts.longest, 40);
  options.output = folder / "b";
  generate_random(options);
  options.seed = 5;
  options.output = folder / "c";
  generate_random(options);
  EXPECT_EQ(read_file(folder / "a" / "events.parquet"), read_file(folder / "b" / "events.parquet"));
  EXPECT_NE(read_file(folder / "a" / "events.parquet"), read_file(folder / "c" / "events.parquet"));
  EXPECT_THROW(generate_random(options), UsageError);  // the output exists
}

// Of 3 ids, drawn by an exponent that a clamp would need above 1.
TEST(GenerateRandom, ZipfIdsAreBelowTheirEnd) {
  const Path folder = temporary_folder();
  RandomOptions options{.users = 300, .output = folder / "zipf"};
  options.lengths.high = 40;
  options.items = {.kind = DistributionKind::zipf, .low = 0, .high = 3, .alpha = 0.5};
  generate_random(options);
  options.items.kind = DistributionKind::bounded_zipf;
  options.output = folder / "bounded";
  generate_random(options);
  EXPECT_EQ(read_file(folder / "zipf" / "events.parquet"), read_file(folder / "bounded" / "events.parquet"));
}

}  // namespace
}  // namespace hstu
