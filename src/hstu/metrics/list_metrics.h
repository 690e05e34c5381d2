// NDCG, MRR, recall and hit rate of ranked lists: the samples of a group (a user's held-out events), highest
// score first. The numbers are expectations over all orders of samples with equal scores (McSherry and
// Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores",
// 2008), so that the order of the samples changes no bit. Formulas: docs/metrics.md
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace hstu {

// By name: "mrr", "ndcg@10", "recall@10", "hit@10". Empty values: no list has both classes.
using ListMetrics = std::map<std::string, std::optional<double>>;

// scores, labels (of 0 or 1), groups: (n); cutoffs: each k >= 1. Means over the groups that have both
// classes, each with the same weight: a list of one class cannot be ranked wrongly. O(n log n + n cutoffs).
// Throws Error for a NaN score or another label.
// `weights`: (n), not negative; a list then counts with the mean of those of its samples. Empty: 1 each.
ListMetrics list_metrics(std::span<const float> scores, std::span<const std::uint8_t> labels,
                         std::span<const std::int64_t> groups, std::span<const std::int64_t> cutoffs,
                         std::span<const float> weights = {});
ListMetrics list_metrics(std::span<const double> scores, std::span<const std::uint8_t> labels,
                         std::span<const std::int64_t> groups, std::span<const std::int64_t> cutoffs,
                         std::span<const float> weights = {});

}  // namespace hstu
