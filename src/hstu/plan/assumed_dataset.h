// A dataset for planning a run whose own is not here: one full batch with the longest histories.
#pragma once

#include <string>

#include "hstu/base/files.h"
#include "hstu/options/options.h"

namespace hstu {

// Written into a temporary folder, which ends with this object.
class AssumedDataset {
 public:
  // Every user of a batch (of training.micro_batch_tokens if that is less) has as many events as a history
  // can have and one more, its anchor. No item occurs twice, as far as its table has rows.
  explicit AssumedDataset(const RunOptions& options);
  ~AssumedDataset();
  AssumedDataset(const AssumedDataset&) = delete;
  AssumedDataset& operator=(const AssumedDataset&) = delete;

  // The options with this dataset, and with its anchors in one window and one batch.
  const RunOptions& options() const { return options_; }

 private:
  RunOptions options_;
};

}  // namespace hstu
