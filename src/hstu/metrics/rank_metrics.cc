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

// A place, and the probability that the target has it, times the target's weight.
struct Place {
  std::int64_t rank;
  double weight;
  auto operator<=>(const Place&) const = default;
};

std::vector<Place> sorted_places(std::span<const RankRange> ranks, std::span<const float> weights) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankRange range = ranks[i];
    require(range.first >= 1 && range.count >= 1, "expected ranks from 1, found {}", range.first);
    const double weight = weights.empty() ? 1 : static_cast<double>(weights[i]);
    for (std::int64_t m = 0; m < range.count; ++m)
      places.push_back({range.first + m, weight / static_cast<double>(range.count)});
  }
  std::sort(places.begin(), places.end());  // a fixed order of the sums
  return places;
}

}  // namespace

Measures rank_metrics(std::span<const RankRange> ranks, std::span<const std::int64_t> cutoffs,
                      std::span<const float> weights) {
  require(weights.empty() || weights.size() == ranks.size(), "expected {} weights, found {}", ranks.size(),
          weights.size());
  const std::vector<Place> places = sorted_places(ranks, weights);
  auto total = static_cast<double>(ranks.size());
  if (!weights.empty()) {
    total = 0;
    for (const Place& place : places) total += place.weight;
  }
  const auto mean = [&](double sum) { return total == 0 ? std::nullopt : std::optional(sum / total); };
  std::set<std::int64_t> all(std::begin(kRetrievalCutoffs), std::end(kRetrievalCutoffs));
  all.insert(cutoffs.begin(), cutoffs.end());
  Measures measures;
  for (const std::int64_t cutoff : all) {
    require(cutoff >= 1, "expected cutoffs from 1, found {}", cutoff);
    double hits = 0, gain = 0;
    for (const Place& place : places) {
      if (place.rank > cutoff) break;
      hits += place.weight;
      gain += place.weight / std::log2(1.0 + static_cast<double>(place.rank));
    }
    measures.add(fmt::format("hr@{}", cutoff), mean(hits));
    measures.add(fmt::format("ndcg@{}", cutoff), mean(gain));
  }
  double reciprocal = 0;
  for (const Place& place : places) {
    if (place.rank >= kUnranked) break;
    reciprocal += place.weight / static_cast<double>(place.rank);
  }
  measures.add("mrr", mean(reciprocal));
  measures.add_count("n", std::ssize(ranks));
  return measures;
}

Measures rank_metrics(std::span<const std::int64_t> ranks, std::span<const std::int64_t> cutoffs,
                      std::span<const float> weights) {
  std::vector<RankRange> ranges;
  ranges.reserve(ranks.size());
  for (const std::int64_t rank : ranks) ranges.push_back({.first = rank});
  return rank_metrics(ranges, cutoffs, weights);
}

}  // namespace hstu
