// AUC of a whole run in constant memory: probabilities counted in equal bins, one histogram per class. Within
// a bin positives and negatives tie (one half), so the value differs from the exact AUC by at most half the
// share of (positive, negative) pairs that fall into one bin.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hstu {

class BinnedAuc {
 public:
  static constexpr std::int64_t kBins = 100'000;

  explicit BinnedAuc(std::int64_t bins = kBins);
  // From the state of a checkpoint: both histograms, of equal length.
  BinnedAuc(std::vector<std::uint64_t> positives, std::vector<std::uint64_t> negatives);

  // Bin = trunc(p * bins) in single precision, p = 1 in the last bin. Throws Error for p outside [0, 1],
  // including nan.
  void add(float probability, bool positive);
  // Adds the histograms; the AUC of parts is never averaged.
  void merge(const BinnedAuc& other);

  // Sum over bins of positives * (negatives in lower bins + negatives in the bin / 2), divided by the number
  // of pairs. Empty if a class is missing.
  std::optional<double> value() const;

  std::span<const std::uint64_t> positives() const { return positives_; }
  std::span<const std::uint64_t> negatives() const { return negatives_; }

 private:
  std::vector<std::uint64_t> positives_, negatives_;  // (bins)
};

}  // namespace hstu
