// Logits of a batch as samples to measure.
#pragma once

#include "hstu/batching/batch.h"
#include "hstu/metrics/ranking.h"
#include "hstu/tensor/tensor.h"

namespace hstu {

// Adds sigmoid(logits), (B, 1) f32, with the batch's labels, grouped by user. Throws NotFiniteError naming
// the first sample whose logit is NaN or infinite.
void add_predictions(const Tensor& logits, const Batch& batch, RankingSamples& samples);

}  // namespace hstu
