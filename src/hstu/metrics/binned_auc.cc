#include "hstu/metrics/binned_auc.h"

#include <algorithm>
#include <utility>

#include "hstu/base/error.h"

namespace hstu {

BinnedAuc::BinnedAuc(std::int64_t bins)
    : positives_(static_cast<std::size_t>(bins)), negatives_(static_cast<std::size_t>(bins)) {
  require(bins > 0, "binned AUC: expected at least one bin, found {}", bins);
}

BinnedAuc::BinnedAuc(std::vector<std::uint64_t> positives, std::vector<std::uint64_t> negatives)
    : positives_(std::move(positives)), negatives_(std::move(negatives)) {
  check(positives_.size() == negatives_.size() && !positives_.empty(),
        "binned AUC: expected two histograms of one length, found {} and {} bins", positives_.size(),
        negatives_.size());
}

void BinnedAuc::add(float probability, bool positive) {
  check(probability >= 0.0f && probability <= 1.0f, "metrics: expected a probability in [0, 1], found {}",
        probability);
  const std::size_t bin = std::min(
      static_cast<std::size_t>(probability * static_cast<float>(positives_.size())), positives_.size() - 1);
  ++(positive ? positives_ : negatives_)[bin];
}

void BinnedAuc::merge(const BinnedAuc& other) {
  require(positives_.size() == other.positives_.size(), "binned AUC: cannot merge {} bins with {}",
          positives_.size(), other.positives_.size());
  for (std::size_t b = 0; b < positives_.size(); ++b) {
    positives_[b] += other.positives_[b];
    negatives_[b] += other.negatives_[b];
  }
}

std::optional<double> BinnedAuc::value() const {
  __extension__ using Sum128 = unsigned __int128;
  Sum128 twice_won = 0;  // a pair won counts 2, a tie 1
  std::uint64_t below = 0, seen_positives = 0;
  for (std::size_t b = 0; b < positives_.size(); ++b) {
    twice_won += Sum128{positives_[b]} * (2 * below + negatives_[b]);
    below += negatives_[b];
    seen_positives += positives_[b];
  }
  if (below == 0 || seen_positives == 0) return std::nullopt;
  return static_cast<double>(twice_won) / static_cast<double>(2 * Sum128{seen_positives} * below);
}

}  // namespace hstu
