// One training step: look up, forward, backward, clip, move.
#pragma once

#include <cstdint>

#include "hstu/batching/batch.h"
#include "hstu/run/results.h"
#include "hstu/training/learner.h"

namespace hstu {

// Step number `step` (0 is the first) on one batch. Throws NotFiniteError naming the step and the first bad
// tensor when the loss or a gradient, of parameters or of rows, is NaN or infinite; nothing is updated then.
StepResult train_step(Learner& learner, const Batch& batch, std::int64_t step);

}  // namespace hstu
