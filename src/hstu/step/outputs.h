// The forward pass of every evaluation and prediction.
#pragma once

#include "hstu/batching/batch.h"
#include "hstu/experiment/learner.h"

namespace hstu {

// The model's outputs for a batch, which is on the learner's device; the learner's stream computes them. Does
// not change the learner.
Tensor outputs_of(Learner& learner, const Batch& batch);

}  // namespace hstu
