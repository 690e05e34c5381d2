#include "hstu/metrics/weighted.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/metrics/pointwise.h"
#include "hstu/metrics/scored_samples.h"

namespace hstu {
namespace {

// By everything that a sample has, so that sums have the order of no input.
std::vector<ScoredSample> sorted_samples(std::span<const double> scores, std::span<const std::uint8_t> labels,
                                         std::span<const std::int64_t> groups,
                                         std::span<const float> weights) {
  require(weights.size() == scores.size(), "metrics: expected {} weights, found {}", scores.size(),
          weights.size());
  std::vector<ScoredSample> samples = scored_samples(scores, labels, groups, weights);
  std::sort(samples.begin(), samples.end(), [](const ScoredSample& a, const ScoredSample& b) {
    return std::tie(a.group, a.score, a.positive, a.weight) <
           std::tie(b.group, b.score, b.positive, b.weight);
  });
  return samples;
}

// Samples ascending by score.
std::optional<double> weighted_auc_of(std::span<const ScoredSample> samples) {
  double positives = 0, negatives = 0, won = 0;
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin;
    double tied_positives = 0, tied_negatives = 0;
    for (; end < samples.size() && samples[end].score == samples[begin].score; ++end)
      (samples[end].positive ? tied_positives : tied_negatives) += samples[end].weight;
    won += tied_positives * (negatives + tied_negatives / 2);
    positives += tied_positives;
    negatives += tied_negatives;
    begin = end;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return won / positives / negatives;
}

void measure_groups(std::span<const ScoredSample> samples, RankingMetrics& metrics) {
  double weighted = 0, plain = 0, weights = 0;
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin;
    double weight = 0;
    for (; end < samples.size() && samples[end].group == samples[begin].group; ++end)
      weight += samples[end].weight;
    if (const auto value = weighted_auc_of(samples.subspan(begin, end - begin))) {
      weighted += *value * weight;
      plain += *value;
      weights += weight;
      metrics.n_groups += 1;
    }
    begin = end;
  }
  if (metrics.n_groups == 0) return;
  metrics.gauc = weighted / weights;
  metrics.gauc_mean = plain / static_cast<double>(metrics.n_groups);
}

double sum_in_order(std::vector<double>& terms) {
  std::sort(terms.begin(), terms.end());
  return std::accumulate(terms.begin(), terms.end(), 0.0);
}

// Sums of weight times a number of the sample.
struct WeightedSums {
  double all, positive, correct, cross_entropy, predictions;
};

WeightedSums sums_of(std::span<const float> probabilities, std::span<const std::uint8_t> labels,
                     std::span<const float> weights) {
  std::vector<double> all, positive, correct, cross_entropy, predictions;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool is_positive = labels[i] == 1;
    const auto weight = static_cast<double>(weights[i]);
    all.push_back(weight);
    if (is_positive) positive.push_back(weight);
    if ((probabilities[i] >= 0.5f) == is_positive) correct.push_back(weight);
    cross_entropy.push_back(weight * cross_entropy_of(probabilities[i], is_positive));
    predictions.push_back(weight * static_cast<double>(probabilities[i]));
  }
  return {sum_in_order(all), sum_in_order(positive), sum_in_order(correct), sum_in_order(cross_entropy),
          sum_in_order(predictions)};
}

}  // namespace

std::optional<double> weighted_auc(std::span<const double> scores, std::span<const std::uint8_t> labels,
                                   std::span<const float> weights) {
  return weighted_auc_of(sorted_samples(scores, labels, {}, weights));
}

RankingMetrics weighted_ranking_metrics(std::span<const double> scores, std::span<const float> probabilities,
                                        std::span<const std::uint8_t> labels,
                                        std::span<const std::int64_t> groups,
                                        std::span<const float> weights) {
  RankingMetrics metrics;
  metrics.auc = weighted_auc(scores, labels, weights);
  measure_groups(sorted_samples(scores, labels, groups, weights), metrics);
  metrics.n = std::ssize(labels);
  metrics.n_pos = std::count(labels.begin(), labels.end(), 1);
  const WeightedSums sums = sums_of(probabilities, labels, weights);
  if (sums.all == 0) return metrics;
  metrics.accuracy = sums.correct / sums.all;
  metrics.log_loss = sums.cross_entropy / sums.all;
  if (sums.positive == 0) return metrics;
  metrics.calibration = sums.predictions / sums.positive;
  if (sums.positive == sums.all) return metrics;
  const double rate = sums.positive / sums.all;
  metrics.ne =
      sums.cross_entropy / -(sums.positive * std::log(rate) + (sums.all - sums.positive) * std::log1p(-rate));
  return metrics;
}

}  // namespace hstu
