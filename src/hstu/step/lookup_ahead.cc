#include "hstu/step/lookup_ahead.h"

#include "hstu/base/thread_stacks.h"

namespace hstu {

LookupAhead::LookupAhead(Learner& learner, Communicator& comm, PartSource* parts)
    : learner_(learner), comm_(comm), parts_(parts) {
  if (!learner.tables.moves_rows() || learner.options.ranks.pipeline == Pipeline::plain) parts_ = nullptr;
  if (parts_ == nullptr || learner.tables.gpus() != nullptr) return;
  thread_ = std::jthread([this] {
    name_this_thread("rows ahead");
    set_threads(1);  // of this thread: the others compute
    failure_.run([this] { look_up(); });
  });
}

void LookupAhead::finish() {
  if (thread_.joinable())
    thread_.join();
  else if (parts_ != nullptr)
    look_up();
  failure_.rethrow();
}

void LookupAhead::look_up() {
  const Batch* const batch = parts_->later(Wait::yes);
  if (batch == nullptr) return;
  comm_.enter("rows of the next step");
  begin_ahead(learner_, *batch);
}

}  // namespace hstu
