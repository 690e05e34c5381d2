// Names of metrics in configurations and logs. docs/metrics.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hstu/metrics/ranking.h"

namespace hstu {

// The metrics of RankingMetrics that need no cutoff.
struct PlainMetric {
  const char* name;
  std::optional<double> RankingMetrics::*value;
};
inline constexpr PlainMetric kPlainMetrics[] = {{"auc", &RankingMetrics::auc},
                                                {"gauc", &RankingMetrics::gauc},
                                                {"gauc_mean", &RankingMetrics::gauc_mean},
                                                {"accuracy", &RankingMetrics::accuracy},
                                                {"ne", &RankingMetrics::ne},
                                                {"log_loss", &RankingMetrics::log_loss}};

// UsageError unless `name` is "", one of kPlainMetrics, mrr, or ndcg@K or recall@K with K >= 1.
void check_metric(const std::string& name);
// The K of a metric with a cutoff.
std::optional<std::int64_t> cutoff_of(const std::string& name);
// False for ne and log_loss.
bool larger_is_better(const std::string& name);

}  // namespace hstu
