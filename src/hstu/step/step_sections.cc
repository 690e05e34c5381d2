#include "hstu/step/step_sections.h"

namespace hstu {

StepSections::StepSections(const Context& context, bool is_timed)
    : timer_(is_timed ? std::make_unique<StageTimer>(context.stream, 1, context.trace) : nullptr),
      trace_(is_timed ? timer_.get() : context.trace) {}

void StepSections::enter(std::string_view section) {
  leave();
  if (trace_ != nullptr) trace_->begin(section);
  inside_ = true;
}

void StepSections::leave() {
  if (!inside_) return;
  inside_ = false;
  if (trace_ != nullptr) trace_->end();
}

std::optional<StageTimes> StepSections::times() {
  leave();
  if (timer_ == nullptr) return std::nullopt;
  StageTimes times;
  for (const StageTime& range : timer_->take()) {
    if (range.name == kLookupSection) times.lookup_ms += range.ms();
    if (range.name == kForwardSection) times.forward_ms += range.ms();
    if (range.name == kBackwardSection) times.backward_ms += range.ms();
    if (range.name == kUpdateSection) times.update_ms += range.ms();
  }
  return times;
}

}  // namespace hstu
