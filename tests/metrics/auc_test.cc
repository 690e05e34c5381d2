#include "hstu/metrics/auc.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"

namespace hstu {
namespace {

using Labels = std::vector<std::uint8_t>;
using Scores = std::vector<float>;

// The definition, pair by pair.
double auc_by_pairs(const Scores& scores, const Labels& labels) {
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] != 1 || labels[j] != 0) continue;
      pairs += 1;
      won += scores[i] > scores[j] ? 1.0 : scores[i] == scores[j] ? 0.5 : 0.0;
    }
  }
  return won / pairs;
}

struct Drawn {
  Scores scores;
  Labels labels;
};

Drawn draw(std::uint64_t seed, int n, int distinct) {
  RandomStream random{derive_key(seed, "auc test")};
  Drawn drawn;
  for (int i = 0; i < n; ++i) {
    const bool positive = random.uniform() < 0.3;
    const double level = std::floor((random.uniform() + (positive ? 0.2 : 0.0)) * distinct) / distinct;
    drawn.scores.push_back(static_cast<float>(level));
    drawn.labels.push_back(positive);
  }
  return drawn;
}

TEST(Auc, EqualsThePairwiseDefinitionWithAndWithoutTies) {
  for (const int distinct : {2, 7, 1000000}) {
    const Drawn d = draw(11, 300, distinct);
    EXPECT_DOUBLE_EQ(auc(d.scores, d.labels).value(), auc_by_pairs(d.scores, d.labels)) << distinct;
  }
}

TEST(Auc, ATieCountsOneHalf) {
  EXPECT_EQ(auc(Scores{0.3f, 0.3f, 0.3f}, Labels{1, 0, 0}), 0.5);
  EXPECT_EQ(auc(Scores{0.1f, 0.3f, 0.3f}, Labels{0, 1, 0}), 0.75);
  EXPECT_EQ(auc(Scores{-0.0f, 0.0f}, Labels{0, 1}), 0.5);
}

TEST(Auc, IsEmptyWhenAClassIsMissing) {
  EXPECT_FALSE(auc(Scores{}, Labels{}).has_value());
  EXPECT_FALSE(auc(Scores{0.1f, 0.9f}, Labels{1, 1}).has_value());
  EXPECT_FALSE(auc(Scores{0.1f, 0.9f}, Labels{0, 0}).has_value());
}

TEST(Auc, RefusesNanAndOtherLabels) {
  EXPECT_THROW(auc(Scores{0.1f, NAN}, Labels{1, 0}), Error);
  EXPECT_THROW(auc(Scores{0.1f, 0.2f}, Labels{1, 2}), Error);
}

TEST(Auc, OrdersInfinitiesAndKeepsDoublesApart) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(auc(Scores{-inf, 0.0f, inf}, Labels{0, 0, 1}), 1.0);
  const std::vector<double> near{0.5, 0.5 + 1e-15};  // equal as floats
  EXPECT_EQ(auc(near, Labels{0, 1}), 1.0);
}

// The trap: every part ranks perfectly, the whole does not.
TEST(Auc, OfMergedPartsIsNotTheMeanOfTheParts) {
  const Scores low{0.1f, 0.2f}, high{0.8f, 0.9f};
  const Labels labels{0, 1};
  EXPECT_EQ(auc(low, labels), 1.0);
  EXPECT_EQ(auc(high, labels), 1.0);
  EXPECT_EQ(auc(Scores{0.1f, 0.2f, 0.8f, 0.9f}, Labels{0, 1, 0, 1}), 0.75);
}

TEST(GroupedAuc, AveragesOverGroupsWithBothClasses) {
  // Group 7: perfect over 2 samples. Group 9: AUC 0.5 over 4. Group 1: one class, left out.
  const Scores scores{0.1f, 0.2f, 0.5f, 0.5f, 0.5f, 0.5f, 0.9f};
  const Labels labels{0, 1, 1, 0, 0, 1, 1};
  const std::vector<std::int64_t> groups{7, 7, 9, 9, 9, 9, 1};
  const GroupedAuc result = grouped_auc(scores, labels, groups);
  EXPECT_EQ(result.n_groups, 2);
  EXPECT_EQ(result.n_samples, 6);
  EXPECT_DOUBLE_EQ(result.mean.value(), 0.75);
  EXPECT_DOUBLE_EQ(result.weighted.value(), (2 * 1.0 + 4 * 0.5) / 6);
}

TEST(GroupedAuc, KeepsDoublesApart) {
  const std::vector<double> near{0.5, 0.5 + 1e-15};  // equal as floats
  EXPECT_EQ(grouped_auc(near, Labels{0, 1}, std::vector<std::int64_t>{3, 3}).mean, 1.0);
}

TEST(GroupedAuc, IsEmptyWhenNoGroupHasBothClasses) {
  const GroupedAuc result = grouped_auc(Scores{0.1f, 0.9f}, Labels{0, 1}, std::vector<std::int64_t>{1, 2});
  EXPECT_FALSE(result.weighted.has_value());
  EXPECT_FALSE(result.mean.has_value());
  EXPECT_EQ(result.n_groups, 0);
}

}  // namespace
}  // namespace hstu
