// Merges ordered sequences of events into one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "hstu/dataset/event_table.h"

namespace hstu {

// Events in order of (user, time), table by table.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // Replaces `events` by the next ones, at least one; false at the end.
  virtual bool next(EventTable& events) = 0;
};

// Passes all events in order to `sink`, in tables of at most `table_events`. For events of equal user and
// time those of the earlier source come first. `advance` receives the number of events so far.
void merge_events(std::span<const std::unique_ptr<EventSource>> sources, std::int64_t table_events,
                  EventSink& sink, const std::function<void(std::int64_t)>& advance);

}  // namespace hstu
