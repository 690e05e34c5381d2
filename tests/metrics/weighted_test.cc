// A sample of weight n is n samples.
#include "hstu/metrics/weighted.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/random.h"
#include "hstu/metrics/auc.h"
#include "hstu/metrics/list_metrics.h"
#include "hstu/metrics/rank_metrics.h"

namespace hstu {
namespace {

// Samples with ties and weights from 0 to 3, and the same with each repeated as often as its weight says.
struct Repeated {
  std::vector<double> scores;
  std::vector<float> probabilities, weights;
  std::vector<std::uint8_t> labels;
  std::vector<std::int64_t> groups, ranks;

  void add(const Repeated& from, std::size_t i, int times) {
    for (int k = 0; k < times; ++k) {
      scores.push_back(from.scores[i]);
      probabilities.push_back(from.probabilities[i]);
      labels.push_back(from.labels[i]);
      groups.push_back(from.groups[i]);
      ranks.push_back(from.ranks[i]);
    }
  }
};

Repeated drawn_samples() {
  Repeated drawn;
  RandomStream random{7};
  for (int i = 0; i < 400; ++i) {
    drawn.scores.push_back(std::floor(random.uniform() * 20));
    drawn.probabilities.push_back(static_cast<float>(random.uniform()));
    drawn.labels.push_back(random.uniform() < 0.3 ? 1 : 0);
    drawn.groups.push_back(static_cast<std::int64_t>(random.below(9)));
    drawn.ranks.push_back(1 + static_cast<std::int64_t>(random.below(60)));
    drawn.weights.push_back(static_cast<float>(random.below(4)));
  }
  return drawn;
}

Repeated repeated(const Repeated& drawn) {
  Repeated all;
  for (std::size_t i = 0; i < drawn.scores.size(); ++i) all.add(drawn, i, static_cast<int>(drawn.weights[i]));
  return all;
}

void expect_alike(const Measures& found, const Measures& expected) {
  for (const auto& [name, value] : expected.all()) {
    if (name.starts_with("n") && name != "ne" && !name.starts_with("ndcg")) continue;  // counts
    ASSERT_TRUE(found.find(name)) << name;
    EXPECT_NEAR(*found.find(name), *expected.find(name), 1e-12) << name;
  }
}

TEST(WeightedMetrics, AreThoseOfRepeatedSamples) {
  const Repeated d = drawn_samples(), all = repeated(d);
  const RankingMetrics found =
      weighted_ranking_metrics(d.scores, d.probabilities, d.labels, d.groups, d.weights);
  expect_alike(measures_of(found),
               measures_of(ranking_metrics(all.scores, all.probabilities, all.labels, all.groups)));
  EXPECT_EQ(found.n, 400);
  EXPECT_EQ(found.auc, weighted_auc(d.scores, d.labels, d.weights));
  const std::vector<std::int64_t> cutoffs{3};
  expect_alike(rank_metrics(d.ranks, cutoffs, d.weights), rank_metrics(all.ranks, cutoffs));
}

TEST(WeightedMetrics, DoNotDependOnTheOrderOfSamples) {
  Repeated d = drawn_samples();
  for (float& weight : d.weights) weight *= 0.37f;
  const RankingMetrics before =
      weighted_ranking_metrics(d.scores, d.probabilities, d.labels, d.groups, d.weights);
  const Measures ranks = rank_metrics(d.ranks, {}, d.weights);
  std::ranges::reverse(d.scores);
  std::ranges::reverse(d.probabilities);
  std::ranges::reverse(d.labels);
  std::ranges::reverse(d.groups);
  std::ranges::reverse(d.weights);
  std::ranges::reverse(d.ranks);
  EXPECT_EQ(measures_of(weighted_ranking_metrics(d.scores, d.probabilities, d.labels, d.groups, d.weights)),
            measures_of(before));
  EXPECT_EQ(rank_metrics(d.ranks, {}, d.weights), ranks);
}

TEST(WeightedMetrics, AreUndefinedWhereAClassHasNoWeight) {
  const std::vector<double> scores{1, 2, 3};
  const std::vector<float> probabilities{0.1f, 0.2f, 0.3f}, weights{0, 1, 2}, none{0, 0, 0};
  const std::vector<std::uint8_t> labels{1, 0, 0};
  const std::vector<std::int64_t> groups{0, 0, 0};
  const RankingMetrics m = weighted_ranking_metrics(scores, probabilities, labels, groups, weights);
  EXPECT_FALSE(m.auc || m.ne || m.gauc || m.calibration);
  EXPECT_TRUE(m.log_loss && m.accuracy);
  EXPECT_FALSE(weighted_ranking_metrics(scores, probabilities, labels, groups, none).log_loss);
}

// Two lists: one with the positive first, of weights 1, 2 and 3, one with it last, of weight 6.
TEST(WeightedMetrics, OfListsAreMeansByTheListsWeights) {
  const std::vector<double> scores{3, 2, 1, 3, 2, 1};
  const std::vector<std::uint8_t> labels{1, 0, 0, 0, 0, 1};
  const std::vector<std::int64_t> groups{0, 0, 0, 1, 1, 1}, cutoffs{1};
  const std::vector<float> weights{1, 2, 3, 6, 6, 6};
  const ListMetrics found = list_metrics(scores, labels, groups, cutoffs, weights);
  EXPECT_DOUBLE_EQ(*found.at("mrr"), (2 * 1 + 6 * (1.0 / 3)) / 8);
  EXPECT_DOUBLE_EQ(*found.at("hit@1"), 0.25);
}

}  // namespace
}  // namespace hstu
