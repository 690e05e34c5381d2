// One training step: row lookup, forward pass, backward pass, clipping, update.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/experiment/learner.h"
#include "hstu/run/results.h"
#include "hstu/step/step_context.h"

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

// A step that has been begun.
class QueuedStep {
 public:
  struct State;
  explicit QueuedStep(std::unique_ptr<State> state);
  QueuedStep(QueuedStep&&) noexcept;
  QueuedStep& operator=(QueuedStep&&) noexcept;
  ~QueuedStep();

  // Whether the next step may begin before finish() of this one: a GPU has all of its work, and keeps little
  // memory for it.
  bool may_wait() const;
  // Waits for the results. Throws NotFiniteError naming the step and the first bad tensor if the loss, a
  // score, or a gradient, of parameters or of rows, is NaN or infinite; neither this step nor one that has
  // begun after it has updated anything then. Call it once.
  StepResult finish();

 private:
  std::unique_ptr<State> state_;
};

// Begins an update by a global batch that comes in parts. The result equals that of one large batch up to
// rounding, for any division into parts and ranks.
QueuedStep begin_step(Learner& learner, const StepContext& context, const NextPart& next_part,
                      const LaterPart* later = nullptr);

// The whole step.
StepResult train_step(Learner& learner, const StepContext& context, const NextPart& next_part,
                      const LaterPart* later = nullptr);

}  // namespace hstu
