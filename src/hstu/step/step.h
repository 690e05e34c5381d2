// One training step: row lookup, forward pass, loss, backward pass, sums over ranks, check, update.
#pragma once

#include <memory>

#include "hstu/experiment/learner.h"
#include "hstu/run/step_result.h"
#include "hstu/step/part_passes.h"
#include "hstu/step/part_source.h"
#include "hstu/step/step_context.h"

namespace hstu {

class StepWork;
class UpdateRule;

// A step that has been begun.
class Step {
 public:
  Step(std::unique_ptr<StepWork> work, std::unique_ptr<UpdateRule> rule);
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  // Whether the next step may begin before finish() of this one: a GPU has all of its work, and keeps little
  // memory for it.
  bool next_may_begin() const;
  // Waits for the results. Throws NotFiniteError naming the step and the first bad tensor if the loss, a
  // score, or a gradient, of parameters or of rows, is NaN or infinite; neither this step nor one that has
  // begun after it has updated anything then. Call it once.
  StepResult finish();

 private:
  std::unique_ptr<StepWork> work_;
  std::unique_ptr<UpdateRule> rule_;
};

// Begins an update by a global batch that comes in parts. The result equals that of one large batch up to
// rounding, for any division into parts and ranks. The learner must outlive the step, `parts` this call.
Step begin_step(Learner& learner, PartSource& parts, const StepContext& context);

// The part of the recipe that takes the most memory: the passes of all parts, of a step and of a plan's dry
// step.
void pass_parts(PartPasses& parts);

}  // namespace hstu
