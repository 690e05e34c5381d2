#include "hstu/metrics/ranking.h"

#include "hstu/base/error.h"
#include "hstu/metrics/auc.h"

namespace hstu {
namespace {

template <typename Score>
RankingMetrics metrics_of(std::span<const Score> scores, std::span<const float> probabilities,
                          std::span<const std::uint8_t> labels, std::span<const std::int64_t> groups) {
  require(probabilities.size() == labels.size(), "metrics: expected {} probabilities, found {}",
          labels.size(), probabilities.size());
  RankingMetrics metrics;
  metrics.auc = auc(scores, labels);
  const GroupedAuc grouped = grouped_auc(scores, labels, groups);
  PointwiseSums sums;
  for (std::size_t i = 0; i < labels.size(); ++i) sums.add(probabilities[i], labels[i] == 1);
  metrics.ne = sums.ne();
  metrics.accuracy = sums.accuracy();
  metrics.gauc = grouped.weighted;
  metrics.gauc_mean = grouped.mean;
  metrics.log_loss = sums.log_loss();
  metrics.calibration = sums.calibration();
  metrics.n = sums.n();
  metrics.n_pos = sums.n_pos();
  metrics.n_groups = grouped.n_groups;
  return metrics;
}

}  // namespace

RankingMetrics ranking_metrics(std::span<const float> probabilities, std::span<const std::uint8_t> labels,
                               std::span<const std::int64_t> groups) {
  return metrics_of(probabilities, probabilities, labels, groups);
}

RankingMetrics ranking_metrics(std::span<const double> scores, std::span<const float> probabilities,
                               std::span<const std::uint8_t> labels, std::span<const std::int64_t> groups) {
  return metrics_of(scores, probabilities, labels, groups);
}

Measures measures_of(const RankingMetrics& metrics) {
  Measures measures;
  measures.add("auc", metrics.auc);
  measures.add("ne", metrics.ne);
  measures.add("accuracy", metrics.accuracy);
  measures.add("gauc", metrics.gauc);
  measures.add("gauc_mean", metrics.gauc_mean);
  measures.add("log_loss", metrics.log_loss);
  measures.add("calibration", metrics.calibration);
  measures.add_count("n", metrics.n);
  measures.add_count("n_pos", metrics.n_pos);
  measures.add_count("n_groups", metrics.n_groups);
  return measures;
}

void RankingSamples::add(float probability, bool positive, std::int64_t group) {
  probabilities_.push_back(probability);
  labels_.push_back(positive ? 1 : 0);
  groups_.push_back(group);
  forget_oldest();
}

void RankingSamples::merge(const RankingSamples& other) {
  require(this != &other, "metrics: samples cannot be merged into themselves");
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(probabilities_, other.probabilities());
  append(labels_, other.labels());
  append(groups_, other.groups());
  forget_oldest();
}

void RankingSamples::clear() {
  first_ = 0;
  probabilities_.clear();
  labels_.clear();
  groups_.clear();
}

void RankingSamples::forget_oldest() {
  if (capacity_ <= 0 || size() <= capacity_) return;
  first_ = probabilities_.size() - static_cast<std::size_t>(capacity_);
  if (first_ < static_cast<std::size_t>(capacity_)) return;
  // Moves the samples only after a whole window has left, so adding one takes constant time on average.
  const auto drop = [this](auto& values) {
    values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(first_));
  };
  drop(probabilities_);
  drop(labels_);
  drop(groups_);
  first_ = 0;
}

RankingMetrics RankingSamples::metrics() const {
  return ranking_metrics(probabilities(), labels(), groups());
}

void LifetimeMetrics::add(float probability, bool positive) {
  sums.add(probability, positive);
  auc.add(probability, positive);
}

void LifetimeMetrics::add(const RankingSamples& samples) {
  for (std::size_t i = 0; i < samples.labels().size(); ++i)
    add(samples.probabilities()[i], samples.labels()[i] != 0);
}

void LifetimeMetrics::merge(const LifetimeMetrics& other) {
  sums.merge(other.sums);
  auc.merge(other.auc);
}

}  // namespace hstu
