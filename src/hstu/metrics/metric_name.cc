#include "hstu/metrics/metric_name.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/base/text.h"

namespace hstu {

void check_metric(const std::string& name) {
  if (name.empty() || name == "mrr" || cutoff_of(name)) return;
  std::vector<std::string> known{"mrr", "ndcg@10", "recall@10"};
  for (const PlainMetric& metric : kPlainMetrics) known.emplace_back(metric.name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    fail_usage("unknown metric \"{}\"{}", name, suggestion(name, known));
}

std::optional<std::int64_t> cutoff_of(const std::string& name) {
  for (const std::string_view prefix : {"ndcg@", "recall@"}) {
    if (!name.starts_with(prefix)) continue;
    const auto k = parse_number<std::int64_t>(std::string_view(name).substr(prefix.size()));
    if (k && *k >= 1) return k;
  }
  return std::nullopt;
}

bool larger_is_better(const std::string& name) {
  return name != "ne" && name != "log_loss";
}

}  // namespace hstu
