#include "hstu/metrics/auc.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/metrics/scored_samples.h"

namespace hstu {
namespace {

__extension__ using Wide = unsigned __int128;  // twice positives * negatives passes 64 bits near 3e9 of each

// Samples ascending by score. Counts in integers, so the value is exact except for the last division.
std::optional<double> auc_of_sorted(std::span<const ScoredSample> samples) {
  std::uint64_t positives = 0, negatives = 0;
  Wide twice_won = 0;  // a pair won counts 2, a tie 1
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin;
    std::uint64_t tied_positives = 0, tied_negatives = 0;
    for (; end < samples.size() && samples[end].score == samples[begin].score; ++end) {
      ++(samples[end].positive ? tied_positives : tied_negatives);
    }
    twice_won += Wide{tied_positives} * (2 * negatives + tied_negatives);
    positives += tied_positives;
    negatives += tied_negatives;
    begin = end;
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  return static_cast<double>(twice_won) / static_cast<double>(2 * Wide{positives} * negatives);
}

template <typename Score>
std::optional<double> auc_of(std::span<const Score> scores, std::span<const std::uint8_t> labels) {
  std::vector<ScoredSample> samples = scored_samples(scores, labels, {});
  std::sort(samples.begin(), samples.end(),
            [](const ScoredSample& a, const ScoredSample& b) { return a.score < b.score; });
  return auc_of_sorted(samples);
}

template <typename Score>
GroupedAuc grouped_auc_of(std::span<const Score> scores, std::span<const std::uint8_t> labels,
                          std::span<const std::int64_t> groups) {
  require(groups.size() == scores.size(), "GAUC: expected as many groups as scores, found {} and {}",
          groups.size(), scores.size());
  std::vector<ScoredSample> samples = scored_samples(scores, labels, groups);
  std::sort(samples.begin(), samples.end(), [](const ScoredSample& a, const ScoredSample& b) {
    return std::tie(a.group, a.score) < std::tie(b.group, b.score);
  });
  GroupedAuc result;
  double weighted_sum = 0, sum = 0;
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin;
    while (end < samples.size() && samples[end].group == samples[begin].group) ++end;
    const auto size = static_cast<std::int64_t>(end - begin);
    if (const auto value = auc_of_sorted(std::span(samples).subspan(begin, end - begin))) {
      weighted_sum += *value * static_cast<double>(size);
      sum += *value;
      result.n_groups += 1;
      result.n_samples += size;
    }
    begin = end;
  }
  if (result.n_groups > 0) {
    result.weighted = weighted_sum / static_cast<double>(result.n_samples);
    result.mean = sum / static_cast<double>(result.n_groups);
  }
  return result;
}

}  // namespace

std::optional<double> auc(std::span<const float> scores, std::span<const std::uint8_t> labels) {
  return auc_of(scores, labels);
}

std::optional<double> auc(std::span<const double> scores, std::span<const std::uint8_t> labels) {
  return auc_of(scores, labels);
}

GroupedAuc grouped_auc(std::span<const float> scores, std::span<const std::uint8_t> labels,
                       std::span<const std::int64_t> groups) {
  return grouped_auc_of(scores, labels, groups);
}

GroupedAuc grouped_auc(std::span<const double> scores, std::span<const std::uint8_t> labels,
                       std::span<const std::int64_t> groups) {
  return grouped_auc_of(scores, labels, groups);
}

}  // namespace hstu
