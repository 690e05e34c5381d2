#include "hstu/step/lookup_ahead.h"

namespace hstu {

LookupAhead::LookupAhead(Learner& learner, Communicator& comm, const LaterPart* later)
    : learner_(learner), comm_(comm), later_(later) {
  if (!learner.tables.moves_rows() || learner.options.ranks.pipeline == Pipeline::plain) later_ = nullptr;
  if (later_ == nullptr || learner.tables.gpus() != nullptr) return;
  thread_ = std::jthread([this] {
    set_threads(1);  // of this thread: the others compute
    failure_.run([this] { look_up(); });
  });
}

void LookupAhead::finish() {
  if (thread_.joinable())
    thread_.join();
  else if (later_ != nullptr)
    look_up();
  failure_.rethrow();
}

void LookupAhead::look_up() {
  const Batch* const batch = later_->awaited();
  if (batch == nullptr) return;
  comm_.enter("rows of the next step");
  begin_ahead(learner_, *batch);
}

}  // namespace hstu
