#include "hstu/benchmark/attention_benchmark.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

TEST(AttentionBenchmark, CountsOperationsAsPublicationsDo) {
  AttentionBenchmark b;
  b.samples = 3, b.length = 100, b.heads = 4, b.head_dim = 64;
  EXPECT_DOUBLE_EQ(attention_flops(b), 2.0 * 3 * 4 * 100 * 100 * 64);
  b.mask.right = -1;
  EXPECT_DOUBLE_EQ(attention_flops(b), 4.0 * 3 * 4 * 100 * 100 * 64);
  b.mask.right = 0, b.contexts = 10, b.targets = 20;  // 4 H D (L (c + h) + t) - 2 H D h^2
  EXPECT_DOUBLE_EQ(attention_flops(b), 3 * (4.0 * 4 * 64 * (100 * 80 + 20) - 2.0 * 4 * 64 * 70 * 70));
}

TEST(AttentionBenchmark, CountsOnlyThePairsOfAWindow) {
  AttentionBenchmark b;
  b.samples = 2, b.length = 5000, b.heads = 4, b.head_dim = 64, b.mask.left = 256;
  const double pairs = 5000.0 * 257 - 256.0 * 257 / 2;  // the first 256 queries see fewer keys
  EXPECT_DOUBLE_EQ(attention_flops(b), 2 * 4.0 * 4 * 64 * pairs);
}

TEST(AttentionBenchmark, TheProblemIsTheBatchOfTheShape) {
  AttentionBenchmark b;
  b.samples = 3, b.length = 100, b.heads = 4, b.head_dim = 64, b.lengths = "lognormal";
  const AttentionProblem p = benchmark_problem(b);
  std::int64_t tokens = 0;
  for (const std::int64_t n : attention_lengths(b)) tokens += n;
  EXPECT_EQ(p.tokens, tokens);
  EXPECT_EQ(p.longest, 100);
  EXPECT_EQ(p.k.row_stride, 4 * 4 * 64);
  EXPECT_EQ(p.k.head_stride, 64);
  EXPECT_EQ(p.alpha, 0.125);
}

TEST(AttentionBenchmark, LengthsFollowTheirLaw) {
  AttentionBenchmark b;
  b.samples = 20000, b.length = 4096, b.lengths = "zipf";
  const std::vector<std::int64_t> zipf = attention_lengths(b);
  const auto share = [&](std::int64_t n) {
    return static_cast<double>(std::count(zipf.begin(), zipf.end(), n)) / 20000;
  };
  EXPECT_NEAR(share(1), 0.179, 0.01);  // 1 / zeta(1.2)
  EXPECT_NEAR(share(4096), 0.169, 0.01);
  EXPECT_EQ(attention_lengths(b), zipf);
  // Means and standard deviations of what the cut leaves.
  const std::tuple<const char*, double, double> laws[] = {
      {"lognormal", 2016, 898}, {"normal", 2048, 980}, {"uniform", 2048.5, 4096 / std::sqrt(12.0)}};
  for (const auto& [law, mean, deviation] : laws) {
    b.lengths = law;
    double sum = 0, squares = 0;
    for (const std::int64_t n : attention_lengths(b)) {
      EXPECT_TRUE(n >= 1 && n <= 4096) << law;
      sum += static_cast<double>(n), squares += static_cast<double>(n) * static_cast<double>(n);
    }
    EXPECT_NEAR(sum / 20000, mean, 60) << law;
    EXPECT_NEAR(std::sqrt(squares / 20000 - sum / 20000 * (sum / 20000)), deviation, 50) << law;
  }
  b.lengths = "gamma";
  EXPECT_THROW(attention_lengths(b), UsageError);
  b.of_samples = {3, 1};
  EXPECT_EQ(attention_lengths(b), b.of_samples);
}

}  // namespace
}  // namespace hstu
