// The order of a dataset: all events of the first user by time, then those of the next user; events of equal
// user and time, to the nanosecond, in the order of the log.
#pragma once

#include "hstu/dataset/event_table.h"

namespace hstu {

bool is_ordered(const EventTable& events);

// The same events in order. At most 2^32 - 1 events.
EventTable ordered(const EventTable& events);

}  // namespace hstu
