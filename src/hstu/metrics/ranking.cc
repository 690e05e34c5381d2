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

Json to_json(const RankingMetrics& metrics) {
  return {{"auc", metrics.auc},
          {"ne", metrics.ne},
          {"accuracy", metrics.accuracy},
          {"gauc", metrics.gauc},
          {"gauc_mean", metrics.gauc_mean},
          {"log_loss", metrics.log_loss},
          {"calibration", metrics.calibration},
          {"n", metrics.n},
          {"n_pos", metrics.n_pos},
          {"n_groups", metrics.n_groups}};
}

RankingMetrics ranking_metrics_from_json(const Json& json) {
  RankingMetrics metrics;
  json.at("auc").get_to(metrics.auc);
  json.at("ne").get_to(metrics.ne);
  json.at("accuracy").get_to(metrics.accuracy);
  json.at("gauc").get_to(metrics.gauc);
  json.at("gauc_mean").get_to(metrics.gauc_mean);
  json.at("log_loss").get_to(metrics.log_loss);
  json.at("calibration").get_to(metrics.calibration);
  json.at("n").get_to(metrics.n);
  json.at("n_pos").get_to(metrics.n_pos);
  json.at("n_groups").get_to(metrics.n_groups);
  return metrics;
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

void LifetimeMetrics::merge(const LifetimeMetrics& other) {
  sums.merge(other.sums);
  auc.merge(other.auc);
}

}  // namespace hstu
