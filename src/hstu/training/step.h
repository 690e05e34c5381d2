// One training step: look up, forward, backward, clip, move.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/training/learner.h"

namespace hstu {

struct StepResult {
  double loss = 0;           // mean cross entropy of the batch times model.loss_weight
  double gradient_norm = 0;  // of the dense parameters, before clipping
  double lr_dense = 0, lr_sparse = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;  // of all sequences: context, history, candidate
};

// Step number `step` (0 is the first) on one batch. Throws Error naming the step and the first bad tensor
// when the loss or a gradient is not a number; the parameters are then as before the step.
StepResult train_step(Learner& learner, const Batch& batch, std::int64_t step);

}  // namespace hstu
