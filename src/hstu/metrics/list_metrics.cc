#include "hstu/metrics/list_metrics.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "hstu/metrics/scored_samples.h"

namespace hstu {
namespace {

// Samples of equal score. They take the places `begin` to `end` of a list, counted from 0, in any order.
struct Tie {
  std::size_t begin, end;
  std::size_t positives;

  std::size_t size() const { return end - begin; }
};

std::vector<Tie> ties_of(std::span<const ScoredSample> list) {
  std::vector<Tie> ties;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (ties.empty() || list[i].score != list[i - 1].score) ties.push_back({i, i, 0});
    ties.back().end = i + 1;
    ties.back().positives += list[i].positive ? 1 : 0;
  }
  return ties;
}

// What the positives of a tie are expected to get, where the first n places of a list give total(n) together:
// the tie's places are shared equally among its samples.
template <typename Total>
double expected_gain(const Tie& tie, const Total& total) {
  return static_cast<double>(tie.positives) * (total(tie.end) - total(tie.begin)) /
         static_cast<double>(tie.size());
}

// The expectation of 1 / (place of the first positive). In a tie of n with p positives, the first of them is
// at place j with the probability q(j): q(1) = p / n, q(j + 1) = q(j) (n - j - p + 1) / (n - j).
double expected_reciprocal_rank(const std::vector<Tie>& ties) {
  for (const Tie& tie : ties) {
    if (tie.positives == 0) continue;
    const std::size_t n = tie.size(), p = tie.positives;
    double sum = 0, probability = static_cast<double>(p) / static_cast<double>(n);
    for (std::size_t j = 1; j <= n - p + 1; ++j) {
      sum += probability / static_cast<double>(tie.begin + j);
      if (j < n) probability *= static_cast<double>(n - j - p + 1) / static_cast<double>(n - j);
    }
    return sum;
  }
  return 0;
}

// The probability that the first k places have a positive.
double expected_hit(const std::vector<Tie>& ties, std::size_t k) {
  for (const Tie& tie : ties) {
    if (tie.begin >= k) break;
    if (tie.positives == 0) continue;
    const std::size_t n = tie.size(), p = tie.positives, places = std::min(n, k - tie.begin);
    if (places > n - p) return 1;
    double none = 1;
    for (std::size_t i = 0; i < places; ++i)
      none *= static_cast<double>(n - p - i) / static_cast<double>(n - i);
    return 1 - none;
  }
  return 0;
}

class Cutoff {
 public:
  explicit Cutoff(std::int64_t k) : k_(static_cast<std::size_t>(k)), discounts_{0} {}

  void add(const std::vector<Tie>& ties, std::size_t positives, double weight) {
    const std::size_t needed = std::min(k_, ties.back().end);
    while (discounts_.size() <= needed) {
      discounts_.push_back(discounts_.back() + 1 / std::log2(static_cast<double>(discounts_.size()) + 1));
    }
    double gain = 0, found = 0;
    for (const Tie& tie : ties) {
      if (tie.begin >= k_) break;
      gain += expected_gain(tie, [this](std::size_t places) { return discounts_[std::min(places, k_)]; });
      found += expected_gain(
          tie, [this](std::size_t places) { return static_cast<double>(std::min(places, k_)); });
    }
    ndcg_ += weight * gain / discounts_[std::min(positives, k_)];
    recall_ += weight * found / static_cast<double>(positives);
    hits_ += weight * expected_hit(ties, k_);
  }

  double ndcg() const { return ndcg_; }
  double recall() const { return recall_; }
  double hits() const { return hits_; }

 private:
  std::size_t k_;
  std::vector<double> discounts_;            // [n]: of the first n places together
  double ndcg_ = 0, recall_ = 0, hits_ = 0;  // sums over lists
};

template <typename Score>
ListMetrics measure_lists(std::span<const Score> scores, std::span<const std::uint8_t> labels,
                          std::span<const std::int64_t> groups, std::span<const std::int64_t> cutoffs,
                          std::span<const float> weights) {
  require(groups.size() == scores.size(), "list metrics: expected {} groups, found {}", scores.size(),
          groups.size());
  std::vector<ScoredSample> samples = scored_samples(scores, labels, groups, weights);
  std::sort(samples.begin(), samples.end(), [](const ScoredSample& a, const ScoredSample& b) {
    return std::tie(a.group, b.score, a.weight) < std::tie(b.group, a.score, b.weight);
  });
  std::vector<Cutoff> at(cutoffs.begin(), cutoffs.end());
  double reciprocal_ranks = 0;
  double lists = 0;  // their weights
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin, positives = 0;
    for (; end < samples.size() && samples[end].group == samples[begin].group; ++end)
      positives += samples[end].positive ? 1 : 0;
    if (positives > 0 && positives < end - begin) {
      const std::vector<Tie> ties = ties_of(std::span(samples).subspan(begin, end - begin));
      double weight = 0;
      for (std::size_t i = begin; i < end; ++i) weight += samples[i].weight;
      weight /= static_cast<double>(end - begin);
      reciprocal_ranks += weight * expected_reciprocal_rank(ties);
      for (Cutoff& cutoff : at) cutoff.add(ties, positives, weight);
      lists += weight;
    }
    begin = end;
  }
  const auto mean = [&](double sum) { return lists > 0 ? std::optional(sum / lists) : std::nullopt; };
  ListMetrics metrics{{"mrr", mean(reciprocal_ranks)}};
  for (std::size_t i = 0; i < at.size(); ++i) {
    metrics[fmt::format("ndcg@{}", cutoffs[i])] = mean(at[i].ndcg());
    metrics[fmt::format("recall@{}", cutoffs[i])] = mean(at[i].recall());
    metrics[fmt::format("hit@{}", cutoffs[i])] = mean(at[i].hits());
  }
  return metrics;
}

}  // namespace

ListMetrics list_metrics(std::span<const float> scores, std::span<const std::uint8_t> labels,
                         std::span<const std::int64_t> groups, std::span<const std::int64_t> cutoffs,
                         std::span<const float> weights) {
  return measure_lists(scores, labels, groups, cutoffs, weights);
}

ListMetrics list_metrics(std::span<const double> scores, std::span<const std::uint8_t> labels,
                         std::span<const std::int64_t> groups, std::span<const std::int64_t> cutoffs,
                         std::span<const float> weights) {
  return measure_lists(scores, labels, groups, cutoffs, weights);
}

}  // namespace hstu
