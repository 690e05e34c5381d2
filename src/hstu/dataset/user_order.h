// User-major order: all events of the first user by time, then those of the next user.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/dataset/event_table.h"

namespace hstu {

struct UserOrder {
  std::vector<std::int64_t> user_ids;  // (U) ascending
  std::vector<std::int64_t>
      offsets;  // (U + 1) flat positions [offsets[u], offsets[u + 1]) belong to user_ids[u]
  std::vector<std::int64_t>
      rows;  // (N) row of the table at each flat position; empty: rows are in order already
};

// Events of one user are ordered by time, events of equal time as the log has them. A log that is in order
// already (Yambda's is) costs one scan and no memory per event, any other 8 bytes per event.
UserOrder order_by_user_and_time(const EventTable& events);

}  // namespace hstu
