#include "hstu/metrics/rank_metrics.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

struct Ranked {
  std::int64_t rank;
  double weight;
  auto operator<=>(const Ranked&) const = default;
};

}  // namespace

Measures rank_metrics(std::span<const std::int64_t> ranks, std::span<const std::int64_t> cutoffs,
                      std::span<const float> weights) {
  require(weights.empty() || weights.size() == ranks.size(), "expected {} weights, found {}", ranks.size(),
          weights.size());
  std::vector<Ranked> sorted;  // a fixed order of the sums
  for (std::size_t i = 0; i < ranks.size(); ++i)
    sorted.push_back({ranks[i], weights.empty() ? 1 : static_cast<double>(weights[i])});
  std::sort(sorted.begin(), sorted.end());
  const std::int64_t least = sorted.empty() ? 1 : sorted.front().rank;
  require(least >= 1, "expected ranks from 1, found {}", least);
  double total = 0;
  for (const Ranked& r : sorted) total += r.weight;
  const auto mean = [&](double sum) { return total == 0 ? std::nullopt : std::optional(sum / total); };
  std::set<std::int64_t> all(std::begin(kRetrievalCutoffs), std::end(kRetrievalCutoffs));
  all.insert(cutoffs.begin(), cutoffs.end());
  Measures measures;
  for (const std::int64_t cutoff : all) {
    require(cutoff >= 1, "expected cutoffs from 1, found {}", cutoff);
    double hits = 0, gain = 0;
    for (auto r = sorted.begin(); r != sorted.end() && r->rank <= cutoff; ++r) {
      hits += r->weight;
      gain += r->weight / std::log2(1.0 + static_cast<double>(r->rank));
    }
    measures.add(fmt::format("hr@{}", cutoff), mean(hits));
    measures.add(fmt::format("ndcg@{}", cutoff), mean(gain));
  }
  double reciprocal = 0;
  for (const Ranked& r : sorted) reciprocal += r.weight / static_cast<double>(r.rank);
  measures.add("mrr", mean(reciprocal));
  measures.add_count("n", std::ssize(sorted));
  return measures;
}

}  // namespace hstu
