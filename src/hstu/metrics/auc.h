// Exact area under the ROC curve: the probability that a positive scores above a negative, where a tie counts
// one half (the Mann-Whitney statistic). O(n log n). The area is not additive: merge samples, never AUCs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace hstu {

// scores (n), labels (n) of 0 or 1. Empty, not 0.5, if a class is missing: the AUC is then undefined. Throws
// Error for a NaN score or another label. Any strictly increasing transform of the scores gives the same
// value.
std::optional<double> auc(std::span<const float> scores, std::span<const std::uint8_t> labels);
std::optional<double> auc(std::span<const double> scores, std::span<const std::uint8_t> labels);

// AUC within groups (a user's impressions), averaged over the groups that have both classes.
struct GroupedAuc {
  std::optional<double>
      weighted;  // by the group's number of samples (Zhou et al., "Deep interest network", 2018)
  std::optional<double> mean;  // equal weight for every group
  std::int64_t n_groups = 0;   // groups with both classes
  std::int64_t n_samples = 0;  // samples in these groups
};

// scores, labels, groups: (n). The order of samples does not change a bit of the result.
GroupedAuc grouped_auc(std::span<const float> scores, std::span<const std::uint8_t> labels,
                       std::span<const std::int64_t> groups);
GroupedAuc grouped_auc(std::span<const double> scores, std::span<const std::uint8_t> labels,
                       std::span<const std::int64_t> groups);

}  // namespace hstu
