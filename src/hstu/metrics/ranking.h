// The metrics of one evaluation or one training window, with their numbers of samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hstu/metrics/binned_auc.h"
#include "hstu/metrics/measures.h"
#include "hstu/metrics/metric_spec.h"
#include "hstu/metrics/pointwise.h"

namespace hstu {

// A metric is empty if the samples do not define it (one class only): null in JSON, not 0.5.
struct RankingMetrics {
  std::optional<double> auc;          // exact, ties averaged
  std::optional<double> ne;           // normalised entropy
  std::optional<double> accuracy;     // threshold 0.5
  std::optional<double> gauc;         // AUC by group, weighted by the group's number of samples
  std::optional<double> gauc_mean;    // AUC by group, every group the same weight
  std::optional<double> log_loss;     // nats
  std::optional<double> calibration;  // mean prediction / mean label
  std::int64_t n = 0, n_pos = 0;      // samples, positive samples
  std::int64_t n_groups = 0;          // groups with both classes, over which GAUC averages
};

// probabilities (n) in [0, 1], labels (n) of 0 or 1, groups (n; the user ids). A pure function of the set of
// samples: their order changes no bit. Throws Error for values outside these sets.
RankingMetrics ranking_metrics(std::span<const float> probabilities, std::span<const std::uint8_t> labels,
                               std::span<const std::int64_t> groups);
// The same with another number than the probability as the ranking score: AUC and GAUC use `scores` (n),
// which must not be NaN.
RankingMetrics ranking_metrics(std::span<const double> scores, std::span<const float> probabilities,
                               std::span<const std::uint8_t> labels, std::span<const std::int64_t> groups);

// auc, ne, accuracy, gauc, gauc_mean, log_loss, calibration, n, n_pos, n_groups, in this order.
Measures measures_of(const RankingMetrics& metrics);

// The metrics of kinds of models that rank candidates by a probability.
inline constexpr MetricSpec kRankingMetrics[] = {
    {.name = "auc", .title = "AUC", .in_tables = true, .in_summary = true, .logs_baseline = true},
    {.name = "ne",
     .title = "NE",
     .better = Better::smaller,
     .in_tables = true,
     .in_summary = true,
     .logs_baseline = true,
     .of_share = true},
    {.name = "accuracy", .title = "accuracy", .in_tables = true, .of_share = true},
    {.name = "gauc", .title = "GAUC", .in_tables = true},
    {.name = "gauc_mean", .title = "mean GAUC"},
    {.name = "log_loss",
     .title = "log loss",
     .better = Better::smaller,
     .of_share = true,
     .of_one_class = true},
    {.name = "calibration", .title = "calibration", .better = Better::neither, .of_share = true},
    {.name = "n", .title = "samples", .better = Better::neither},
    {.name = "n_pos", .title = "positive", .better = Better::neither},
    {.name = "n_groups", .title = "users with both", .better = Better::neither},
    {.name = "mrr", .title = "MRR", .of_lists = true},
    {.name = "ndcg", .title = "NDCG", .has_cutoff = true, .of_lists = true},
    {.name = "recall", .title = "recall", .has_cutoff = true, .of_lists = true},
    {.name = "hit", .title = "hit rate", .has_cutoff = true, .of_lists = true}};

// Samples for exact metrics. Parts (of threads, of ranks) are merged as samples before they are measured.
class RankingSamples {
 public:
  // capacity > 0: keeps a window of the latest samples; 0: keeps all.
  explicit RankingSamples(std::int64_t capacity = 0) : capacity_(capacity) {}

  void add(float probability, bool positive, std::int64_t group);
  // Appends the samples of `other`, oldest first.
  void merge(const RankingSamples& other);
  void clear();
  RankingMetrics metrics() const;

  std::int64_t size() const { return static_cast<std::int64_t>(probabilities_.size() - first_); }
  // The samples kept, oldest first.
  std::span<const float> probabilities() const { return std::span(probabilities_).subspan(first_); }
  std::span<const std::uint8_t> labels() const { return std::span(labels_).subspan(first_); }
  std::span<const std::int64_t> groups() const { return std::span(groups_).subspan(first_); }

 private:
  void forget_oldest();

  std::int64_t capacity_;
  std::size_t first_ = 0;  // index of the oldest sample in the window
  std::vector<float> probabilities_;
  std::vector<std::uint8_t> labels_;
  std::vector<std::int64_t> groups_;
};

// Metrics over all samples of a run, in constant memory; GAUC has no such form and is omitted.
struct LifetimeMetrics {
  PointwiseSums sums;
  BinnedAuc auc;

  void add(float probability, bool positive);
  void add(const RankingSamples& samples);
  void merge(const LifetimeMetrics& other);
};

}  // namespace hstu
