#include "hstu/step/step.h"

#include <utility>

#include "hstu/step/launches.h"
#include "hstu/step/step_work.h"
#include "hstu/step/update_rule.h"

namespace hstu {

// The recipe. Work for a GPU is put on its streams here, and finish() waits for it.
Step begin_step(Learner& learner, PartSource& parts, const StepContext& context) {
  auto work = std::make_unique<StepWork>(learner, parts, context);
  std::unique_ptr<UpdateRule> rule;
  with_launches_of_step(learner, work->part(), [&] {
    pass_parts(*work);  // 1 to 4
    // Scores are added up beside the backward pass: the sums over GPUs wait for its end. Not where that needs
    // messages.
    if (learner.gpus != nullptr && context.unshared) work->settle_predictions();
    work->sum_over_ranks();  // 5 gradients of parameters and of rows
    rule = choose_update_rule(*work);
    rule->begin(*work);  // 6 check, 7 update: where the device decides
  });
  return {std::move(work), std::move(rule)};
}

void pass_parts(PartPasses& parts) {
  for (; parts.part() != nullptr; parts.advance()) {
    parts.look_up_rows();  // 1 rows: those of the following part too, beside this part's passes
    parts.launch([&] {
      parts.forward();   // 2 the model
      parts.loss();      // 3 the loss, and the scores that predictions need
      parts.backward();  // 4 gradients; the sums of dense ones begin as they become final
    });
  }
}

StepResult Step::finish() {
  work_->settle_predictions();  // while a GPU still computes the rest
  rule_->finish(*work_);        // 6 check, 7 update: where the host decides; or what the device has decided
  return work_->figures();      // 8
}

Step::Step(std::unique_ptr<StepWork> work, std::unique_ptr<UpdateRule> rule)
    : work_(std::move(work)), rule_(std::move(rule)) {}
Step::Step(Step&&) noexcept = default;
Step& Step::operator=(Step&&) noexcept = default;
Step::~Step() = default;

bool Step::next_may_begin() const {
  return rule_->next_may_begin(*work_);
}

}  // namespace hstu
