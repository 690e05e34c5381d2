// Who decides whether a step updates the model: it must not if a number that should be finite is not.
#pragma once

#include <memory>

#include "hstu/step/step_work.h"

namespace hstu {

// Of one step, after StepWork::sum_over_ranks().
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // Puts what the decision needs on the streams; where the device decides, the update too.
  virtual void begin(StepWork& work) = 0;
  // After StepWork::settle_predictions(): settles the figures, and throws NotFiniteError if nothing was or
  // may be updated; where the host decides, updates.
  virtual void finish(StepWork& work) = 0;
  // Whether the next step may begin before finish().
  virtual bool next_may_begin(const StepWork& work) const = 0;
};

// A GPU decides for its tables where the learner has an UpdateCheck and the step has one part, so that the
// host need not wait for it. Otherwise the host decides.
std::unique_ptr<UpdateRule> choose_update_rule(const StepWork& work);

}  // namespace hstu
