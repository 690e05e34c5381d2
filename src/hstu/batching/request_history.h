// The history of a request among its user's events in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "hstu/batching/event_lists.h"
#include "hstu/batching/history.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

class RequestHistory {
 public:
  // Selects from `events`, which are before the request, oldest first, what HistoryGatherer::gather() selects
  // from a dataset. A history that is the last of them is read in place: they must outlive it.
  void select(const EventColumns& events, const HistoryRule& rule);
  // Oldest first; valid until the next call of select().
  const EventColumns& events() const { return events_; }

 private:
  EventColumns events_;
  EventLists copies_;  // of events that are not in a row
};

}  // namespace hstu
