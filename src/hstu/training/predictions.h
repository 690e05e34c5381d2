// Turns the logits of batches into samples for metrics.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/comm/communicator.h"
#include "hstu/metrics/ranking.h"
#include "hstu/tensor/tape.h"

namespace hstu {

// The logits of one batch with copies of the columns that identify its samples: they are read after the
// batch's memory may have been reused.
struct Scores {
  Tensor logits;                             // (B, 1) f32
  std::vector<std::int64_t> user, position;  // (B)
  std::vector<float> label;                  // (B)
};
Scores scores_of(const Variable& logits, const Batch& batch);

// Adds sigmoid(logits) with the labels, grouped by user. Waits for `stream`, which computes the logits.
// Throws NotFiniteError naming the first sample whose logit is NaN or infinite.
void add_predictions(const Scores& scores, const Stream& stream, RankingSamples& samples);

// The samples of all ranks, in the order of ranks.
RankingSamples gather(const RankingSamples& samples, Communicator& comm);

}  // namespace hstu
