#include "hstu/metrics/list_metrics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/base/random.h"

namespace hstu {
namespace {

struct Samples {
  std::vector<float> scores;
  std::vector<std::uint8_t> labels;
  std::vector<std::int64_t> groups;
};

ListMetrics metrics_of(const Samples& s, const std::vector<std::int64_t>& cutoffs) {
  return list_metrics(s.scores, s.labels, s.groups, cutoffs);
}

// One list in one order, straight from the definitions.
std::map<std::string, double> of_order(const std::vector<std::uint8_t>& labels,
                                       const std::vector<std::int64_t>& cutoffs) {
  std::map<std::string, double> values{{"mrr", 0}};
  const auto positives = std::accumulate(labels.begin(), labels.end(), 0.0);
  for (std::size_t i = labels.size(); i-- > 0;)
    if (labels[i] == 1) values["mrr"] = 1 / (static_cast<double>(i) + 1);
  for (const std::int64_t k : cutoffs) {
    double gain = 0, ideal = 0, found = 0;
    for (std::size_t i = 0; i < labels.size() && i < static_cast<std::size_t>(k); ++i) {
      const double discount = 1 / std::log2(static_cast<double>(i) + 2);
      gain += labels[i] * discount;
      found += labels[i];
      ideal += static_cast<double>(i) < positives ? discount : 0;
    }
    values[fmt::format("ndcg@{}", k)] = gain / ideal;
    values[fmt::format("recall@{}", k)] = found / positives;
    values[fmt::format("hit@{}", k)] = found > 0 ? 1 : 0;
  }
  return values;
}

// The mean over every order of the samples in which no score rises.
std::map<std::string, double> brute_force(const Samples& s, const std::vector<std::int64_t>& cutoffs) {
  std::map<std::string, double> mean;
  std::map<std::int64_t, std::vector<std::size_t>> lists;
  for (std::size_t i = 0; i < s.scores.size(); ++i) lists[s.groups[i]].push_back(i);
  double counted = 0;
  for (auto& [group, members] : lists) {
    const auto positives = std::count_if(members.begin(), members.end(), [&](auto i) { return s.labels[i]; });
    if (positives == 0 || positives == static_cast<std::ptrdiff_t>(members.size())) continue;
    ++counted;
    std::map<std::string, double> sums;
    double orders = 0;
    std::sort(members.begin(), members.end());
    do {
      std::vector<std::uint8_t> labels;
      bool falls = true;
      for (std::size_t i = 0; i < members.size(); ++i) {
        falls = falls && (i == 0 || s.scores[members[i - 1]] >= s.scores[members[i]]);
        labels.push_back(s.labels[members[i]]);
      }
      if (!falls) continue;
      ++orders;
      for (const auto& [name, value] : of_order(labels, cutoffs)) sums[name] += value;
    } while (std::next_permutation(members.begin(), members.end()));
    for (const auto& [name, sum] : sums) mean[name] += sum / orders;
  }
  for (auto& [name, sum] : mean) sum /= counted;
  return mean;
}

TEST(ListMetrics, EqualTheMeanOverAllOrdersOfTies) {
  RandomStream random{5};
  const std::vector<std::int64_t> cutoffs{1, 3, 10};
  for (int round = 0; round < 60; ++round) {
    Samples s;
    for (std::int64_t group = 0; group < 5; ++group) {
      for (std::uint64_t n = 1 + random.below(7); n > 0; --n) {
        s.scores.push_back(static_cast<float>(random.below(4)) / 4);
        s.labels.push_back(static_cast<std::uint8_t>(random.below(2)));
        s.groups.push_back(7 - group);
      }
    }
    const ListMetrics found = metrics_of(s, cutoffs);
    const auto expected = brute_force(s, cutoffs);
    for (const auto& [name, value] : expected)
      EXPECT_NEAR(found.at(name).value_or(-1), value, 1e-12) << name << " in round " << round;
    EXPECT_EQ(found.size(), 1 + 3 * cutoffs.size());
  }
}

TEST(ListMetrics, OfAListByHand) {
  // The positives are at the places 2 and 4 of 4.
  const Samples s{{0.9f, 0.8f, 0.7f, 0.1f}, {0, 1, 0, 1}, {3, 3, 3, 3}};
  const ListMetrics found = metrics_of(s, {1, 2});
  EXPECT_EQ(found.at("mrr"), 0.5);
  EXPECT_EQ(found.at("recall@1"), 0.0);
  EXPECT_EQ(found.at("recall@2"), 0.5);
  EXPECT_EQ(found.at("ndcg@1"), 0.0);
  EXPECT_DOUBLE_EQ(found.at("ndcg@2").value(), (1 / std::log2(3.0)) / (1 + 1 / std::log2(3.0)));
}

TEST(ListMetrics, TheOrderOfSamplesChangesNoBit) {
  Samples s;
  RandomStream random{9};
  for (int i = 0; i < 400; ++i) {
    s.scores.push_back(static_cast<float>(random.below(30)) / 30);
    s.labels.push_back(static_cast<std::uint8_t>(random.below(2)));
    s.groups.push_back(static_cast<std::int64_t>(random.below(20)));
  }
  const ListMetrics before = metrics_of(s, {1, 5});
  std::reverse(s.scores.begin(), s.scores.end());
  std::reverse(s.labels.begin(), s.labels.end());
  std::reverse(s.groups.begin(), s.groups.end());
  EXPECT_EQ(metrics_of(s, {1, 5}), before);
}

TEST(ListMetrics, AListOfOneClassDoesNotCount) {
  const Samples s{{0.9f, 0.8f, 0.3f}, {1, 1, 0}, {1, 1, 2}};
  EXPECT_EQ(metrics_of(s, {1}).at("ndcg@1"), std::nullopt);
  EXPECT_EQ(metrics_of({}, {1}).at("mrr"), std::nullopt);
  EXPECT_THROW(metrics_of({{NAN, 0.5f}, {0, 1}, {1, 1}}, {1}), Error);
}

}  // namespace
}  // namespace hstu
