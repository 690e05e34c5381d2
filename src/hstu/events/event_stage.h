// A stage between the ordered events of a log and the sink that receives them.
#pragma once

#include <utility>

#include "hstu/dataset/event_table.h"

namespace hstu {

class EventStage : public EventSink {
 public:
  explicit EventStage(EventSink& next) : next_(next) {}
  // Passes on what the stage still holds. Call it once, after the last events.
  virtual void finish() = 0;

 protected:
  void pass_on(EventTable events) {
    if (events.size() > 0) next_.append(std::move(events));
  }

 private:
  EventSink& next_;
};

}  // namespace hstu
