// Makes batches out of anchors' positions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/features.h"
#include "hstu/batching/history.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// A batch is a pure function of (dataset, options, positions). Safe to use from many threads at once. The
// dataset must outlive it.
class BatchBuilder {
 public:
  // UsageError for names the dataset does not have and values out of range.
  BatchBuilder(const Dataset& dataset, const DataOptions& options);

  // The samples whose anchors stand at `positions`, in their order. Nothing at or after an anchor's position
  // reaches its sample, but for the candidate itself: item, time, label, context.
  Batch build(std::span<const std::int64_t> positions) const;

  // No sample of these options has a longer history.
  std::int64_t longest_history() const { return rule_.longest; }
  // No sample has more tokens: contextual, history, candidate.
  std::int64_t longest_sequence() const {
    return static_cast<std::int64_t>(features_.size()) + rule_.longest + 1;
  }

 private:
  void add_histories(Batch& batch, std::span<const std::int64_t> user_starts) const;

  const Dataset& dataset_;
  HistoryRule rule_;
  ContextualFeatures features_;
  std::vector<const MappedColumn*> attributes_;
  std::uint8_t label_bit_;
};

}  // namespace hstu
