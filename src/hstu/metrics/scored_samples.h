// The samples that ranking metrics sort, checked.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/error.h"

namespace hstu {

struct ScoredSample {
  std::int64_t group;
  double score;
  bool positive;
  double weight;
};

// scores, labels (n); groups (n), or empty: one group; weights (n), or empty: 1 each. Throws Error for a NaN
// score or a label other than 0 and 1.
template <typename Score>
std::vector<ScoredSample> scored_samples(std::span<const Score> scores, std::span<const std::uint8_t> labels,
                                         std::span<const std::int64_t> groups,
                                         std::span<const float> weights = {}) {
  require(scores.size() == labels.size(), "AUC: expected as many labels as scores, found {} and {}",
          labels.size(), scores.size());
  require(groups.empty() || groups.size() == scores.size(),
          "AUC: expected as many groups as scores, found {} and {}", groups.size(), scores.size());
  require(weights.empty() || weights.size() == scores.size(), "AUC: expected {} weights, found {}",
          scores.size(), weights.size());
  std::vector<ScoredSample> samples;
  samples.reserve(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    check(!std::isnan(scores[i]), "AUC: expected numbers as scores, found nan at sample {}", i);
    check(labels[i] <= 1, "AUC: expected labels 0 or 1, found {} at sample {}", labels[i], i);
    samples.push_back({groups.empty() ? 0 : groups[i], static_cast<double>(scores[i]), labels[i] == 1,
                       weights.empty() ? 1 : static_cast<double>(weights[i])});
  }
  return samples;
}

}  // namespace hstu
