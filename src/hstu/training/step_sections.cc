#include "hstu/training/step_sections.h"

namespace hstu {

void StepSections::enter(std::string_view section) {
  leave();
  timer_.begin(section);
  inside_ = true;
}

void StepSections::leave() {
  if (!inside_) return;
  inside_ = false;
  timer_.end();
}

StageTimes StepSections::times() {
  leave();
  StageTimes times;
  for (const StageTime& range : timer_.take()) {
    if (range.name == kLookupSection) times.lookup_ms += range.ms();
    if (range.name == kForwardSection) times.forward_ms += range.ms();
    if (range.name == kBackwardSection) times.backward_ms += range.ms();
    if (range.name == kUpdateSection) times.update_ms += range.ms();
  }
  return times;
}

}  // namespace hstu
