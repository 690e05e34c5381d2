// One training step: look up, forward, backward, clip, move.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/run/results.h"
#include "hstu/training/learner.h"
#include "hstu/training/step_context.h"

namespace hstu {

// Gives the next part of the global batch, valid until the next call; null after the last.
using NextPart = std::function<const Batch*()>;

// One update by a global batch that comes in parts. The result is that of one large batch, up to rounding,
// whatever the parts and the ranks. Throws NotFiniteError naming the step and the first bad tensor when the
// loss or a gradient, of parameters or of rows, is NaN or infinite; nothing is updated then.
StepResult train_step(Learner& learner, const StepContext& context, const NextPart& next_part);

}  // namespace hstu
