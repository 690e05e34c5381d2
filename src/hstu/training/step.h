// One training step: row lookup, forward pass, backward pass, clipping, update.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/run/results.h"
#include "hstu/training/learner.h"
#include "hstu/training/step_context.h"

namespace hstu {

class Loader;

// Returns the next part of the global batch, whose tensors are on the step's device, valid until the call
// after the next; null after the last.
using NextPart = std::function<Batch*()>;

// The first part of the next global batch.
struct LaterPart {
  // Null if it is not built yet. It may be in host memory alone.
  std::function<const Batch*()> if_built;
  // Waits for it; null after the last batch. Its tensors are on the step's device.
  std::function<const Batch*()> awaited;
};

// What next() of the loader will return.
LaterPart later_part(Loader& loader);

// One update by a global batch that comes in parts. The result equals that of one large batch up to rounding,
// for any division into parts and ranks. Throws NotFiniteError naming the step and the first bad tensor if
// the loss or a gradient, of parameters or of rows, is NaN or infinite; nothing is updated then.
StepResult train_step(Learner& learner, const StepContext& context, const NextPart& next_part,
                      const LaterPart* later = nullptr);

}  // namespace hstu
