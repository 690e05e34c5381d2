// One training step: look up, forward, backward, clip, move.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/training/learner.h"
#include "hstu/training/step_context.h"

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

// What the model predicted for the samples of a step, before the update.
struct Predictions {
  std::vector<float> probability, label;  // (B)
};

struct StepResult {
  double loss = 0;           // of the global batch: mean cross entropy times model.loss_weight
  double gradient_norm = 0;  // of the dense parameters, before clipping
  double lr_dense = 0, lr_sparse = 0;
  std::int64_t samples = 0;  // of this rank, likewise what follows
  std::int64_t tokens = 0;   // of all sequences: context, history, candidate
  Predictions predictions;
  StageTimes stages;
};

// Gives the next part of the global batch, valid until the next call; null after the last.
using NextPart = std::function<const Batch*()>;

// One update by a global batch that comes in parts. The result is that of one large batch, up to rounding,
// whatever the parts and the ranks. Throws Error naming the step and the first bad tensor when the loss or a
// gradient is not finite; parameters and rows are then as before the step.
StepResult train_step(Learner& learner, const StepContext& context, const NextPart& next_part);

}  // namespace hstu
