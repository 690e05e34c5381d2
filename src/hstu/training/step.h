// One training step: look up, forward, backward, clip, move.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/training/learner.h"

namespace hstu {

// Where the time of a step goes.
struct StageTimes {
  double lookup_ms = 0;  // of table rows
  double forward_ms = 0, backward_ms = 0;
  double update_ms = 0;  // clipping and both optimizers

  StageTimes& operator+=(const StageTimes& other) {
    lookup_ms += other.lookup_ms;
    forward_ms += other.forward_ms;
    backward_ms += other.backward_ms;
    update_ms += other.update_ms;
    return *this;
  }
};

struct StepResult {
  double loss = 0;           // mean cross entropy of the batch times model.loss_weight
  double gradient_norm = 0;  // of the dense parameters, before clipping
  double lr_dense = 0, lr_sparse = 0;
  std::int64_t samples = 0;
  std::int64_t tokens = 0;  // of all sequences: context, history, candidate
  StageTimes stages;
};

// Step number `step` (0 is the first) on one batch. Throws Error naming the step and the first bad tensor
// when the loss or a gradient is not a number; the parameters are then as before the step.
StepResult train_step(Learner& learner, const Batch& batch, std::int64_t step);

}  // namespace hstu
