#include "hstu/metrics/rank_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"

namespace hstu {

Measures rank_metrics(std::span<const std::int64_t> ranks, std::span<const std::int64_t> cutoffs) {
  std::vector<std::int64_t> sorted(ranks.begin(), ranks.end());  // a fixed order of the sums
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t least = sorted.empty() ? 1 : sorted.front();
  require(least >= 1, "expected ranks from 1, found {}", least);
  const auto n = static_cast<double>(sorted.size());
  const auto mean = [&](double sum) { return sorted.empty() ? std::nullopt : std::optional(sum / n); };
  std::set<std::int64_t> all(std::begin(kRetrievalCutoffs), std::end(kRetrievalCutoffs));
  all.insert(cutoffs.begin(), cutoffs.end());
  Measures measures;
  for (const std::int64_t cutoff : all) {
    require(cutoff >= 1, "expected cutoffs from 1, found {}", cutoff);
    double gain = 0;
    const auto end = std::upper_bound(sorted.begin(), sorted.end(), cutoff);
    for (auto rank = sorted.begin(); rank != end; ++rank)
      gain += 1 / std::log2(1.0 + static_cast<double>(*rank));
    measures.add(fmt::format("hr@{}", cutoff), mean(static_cast<double>(end - sorted.begin())));
    measures.add(fmt::format("ndcg@{}", cutoff), mean(gain));
  }
  double reciprocal = 0;
  for (const std::int64_t rank : sorted) reciprocal += 1 / static_cast<double>(rank);
  measures.add("mrr", mean(reciprocal));
  measures.add_count("n", std::ssize(sorted));
  return measures;
}

}  // namespace hstu
