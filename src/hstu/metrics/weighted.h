// The metrics of ranking with samples that count with a weight: a sample of weight 2 is two samples.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hstu/metrics/ranking.h"

namespace hstu {

// As auc() and ranking_metrics() have them, with weights (n), not negative: pairs count with the product of
// their weights, means and rates with the weight, a group of `gauc` with the sum of its own. `gauc_mean`
// counts groups alike, and n, n_pos and n_groups count samples and groups. A class whose weights are all 0 is
// missing. The order of the samples changes no bit.
std::optional<double> weighted_auc(std::span<const double> scores, std::span<const std::uint8_t> labels,
                                   std::span<const float> weights);
RankingMetrics weighted_ranking_metrics(std::span<const double> scores, std::span<const float> probabilities,
                                        std::span<const std::uint8_t> labels,
                                        std::span<const std::int64_t> groups, std::span<const float> weights);

}  // namespace hstu
