// Draws the negatives of anchors: items that are ranked beside an anchor's own, with the label 0.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hstu/batching/batch_draws.h"
#include "hstu/batching/candidate.h"
#include "hstu/batching/options.h"
#include "hstu/batching/training_items.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// A pure function of (draws, anchor): what other anchors get changes nothing. Thread-safe.
class NegativeSampler {
 public:
  // The dataset must outlive it. `items`: with days, if `options` draws from those. `catalogue`: of `all`,
  // ids ascending.
  NegativeSampler(const Dataset& dataset, const NegativeOptions& options,
                  std::shared_ptr<const TrainingItems> items, std::vector<std::int64_t> catalogue = {});

  // Appends `per_positive` different items, none of them the anchor's own or, with exclude_seen, of an event
  // of `before`. Fewer, if the training part does not have so many other items. Of `all`: the catalogue's
  // that are allowed, ascending.
  void draw(const BatchDraws& draws, const Candidate& anchor, std::vector<std::int64_t>& drawn) const;

 private:
  std::int64_t propose(const BatchDraws& draws, const Candidate& anchor, std::int64_t slot,
                       std::int64_t attempt) const;
  bool allows(const Candidate& anchor, std::int64_t item) const;
  void take_all(const Candidate& anchor, std::vector<std::int64_t>& drawn) const;

  const Dataset& dataset_;
  NegativeOptions options_;
  std::shared_ptr<const TrainingItems> items_;
  std::vector<std::int64_t> catalogue_;
};

}  // namespace hstu
