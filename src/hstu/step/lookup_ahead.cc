#include "hstu/step/lookup_ahead.h"

namespace hstu {
namespace {

constexpr std::string_view kStage = "rows of the next step";

}  // namespace

LookupAhead::LookupAhead(Learner& learner, PartSource* parts) : learner_(learner), parts_(parts) {
  if (!learner.tables.is_distributed() || learner.options.ranks.pipeline == Pipeline::plain) parts_ = nullptr;
  if (parts_ == nullptr || is_on_gpus()) return;
  begun_ = learner.exchanges.submit(kStage, learner.tables.stream(), [this] { look_up(); });
}

LookupAhead::~LookupAhead() {
  if (parts_ != nullptr && !is_on_gpus()) learner_.exchanges.drop();
}

void LookupAhead::finish() {
  if (parts_ == nullptr) return;
  if (is_on_gpus()) {
    learner_.tables.comm().enter(kStage);
    look_up();
  } else {
    learner_.exchanges.wait(begun_);
  }
  parts_ = nullptr;
}

void LookupAhead::look_up() {
  if (const Batch* const batch = parts_->later(Wait::yes)) begin_ahead(learner_, *batch);
}

}  // namespace hstu
