// One training step: look up, forward, backward, clip, move.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/run/results.h"
#include "hstu/training/learner.h"

namespace hstu {

// Step number `step` (0 is the first) on one batch. Throws Error naming the step and the first bad tensor
// when the loss or a gradient is not a number; the parameters are then as before the step.
StepResult train_step(Learner& learner, const Batch& batch, std::int64_t step);

}  // namespace hstu
