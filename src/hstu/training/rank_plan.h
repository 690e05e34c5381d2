// What a run on several ranks will be like: how even their work is, and what they send each other.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/json.h"
#include "hstu/run/options.h"

namespace hstu {

struct RankPlan {
  int ranks = 1;
  std::int64_t batches = 0, samples = 0;  // that were divided, of the run's first
  bool split = true;                      // tables
  // The largest work of a rank over the mean, averaged over the batches: as divided, and in slices.
  double imbalance = 1, imbalance_of_slices = 1;
  double division_ms = 0;  // of one batch on one thread, the median
  // Bytes that leave a rank in a batch, the mean over ranks and batches: for the sum of dense gradients, for
  // the ids and rows of the lookup, and for the row gradients with their ids.
  double dense = 0, ids = 0, rows = 0, row_gradients = 0;
  double most_ids_over_mean = 1;  // of a rank, averaged over the batches

  double bytes() const { return dense + ids + rows + row_gradients; }
};

// Divides and lays out the first batches of the run: about 100,000 samples. Throws UsageError as Experiment
// does.
RankPlan plan_ranks(const RunOptions& options, int ranks);

std::string to_text(const RankPlan& plan);
Json to_json(const RankPlan& plan);

}  // namespace hstu
