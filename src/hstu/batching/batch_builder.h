// Makes batches out of anchors' positions.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/features.h"
#include "hstu/batching/history.h"
#include "hstu/batching/item_numbers.h"
#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// What making a batch needs beside the batch itself. Reused from batch to batch, so that nothing is allocated
// in the long run; one thread at a time.
struct BatchScratch {
  explicit BatchScratch(HistoryGatherer histories) : gatherer(std::move(histories)) {}
  HistoryGatherer gatherer;
  ItemNumbers numbers;
  std::vector<std::int64_t> user_starts;  // (B)
  std::vector<std::int32_t> place;        // [number of an item] index into Batch::items
};

// A batch is a pure function of (dataset, options, positions). Safe to use from many threads at once, each
// with a scratch of its own. The dataset must outlive it.
class BatchBuilder {
 public:
  // UsageError for names the dataset does not have and values out of range.
  BatchBuilder(const Dataset& dataset, const DataOptions& options);

  // The samples whose anchors stand at `positions`, in their order. Nothing at or after an anchor's position
  // reaches its sample, but for the candidate itself: item, time, label, context. What `batch` held is
  // overwritten, in its own memory.
  void build(std::span<const std::int64_t> positions, Batch& batch, BatchScratch& scratch) const;
  Batch build(std::span<const std::int64_t> positions) const;
  BatchScratch scratch() const {
    return BatchScratch(HistoryGatherer(dataset_.action(), dataset_.pool_counts(), rule_));
  }

  // No sample of these options has a longer history.
  std::int64_t longest_history() const { return rule_.longest; }
  // No sample has more tokens: contextual, history, candidate.
  std::int64_t longest_sequence() const {
    return static_cast<std::int64_t>(features_.size()) + rule_.longest + 1;
  }

 private:
  void add_candidates(Batch& batch, BatchScratch& scratch) const;
  void add_histories(Batch& batch, BatchScratch& scratch) const;
  void add_items(Batch& batch, BatchScratch& scratch) const;

  const Dataset& dataset_;
  HistoryRule rule_;
  ContextualFeatures features_;
  std::vector<const MappedColumn*> attributes_;
  std::uint8_t label_bit_;
};

}  // namespace hstu
