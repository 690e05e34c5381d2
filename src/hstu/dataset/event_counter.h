// Counts of events that arrive in order of (user, time).
#pragma once

#include <cstdint>
#include <optional>

#include "hstu/dataset/distinct_counter.h"
#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

class EventCounter {
 public:
  // Positives are rankable events that have `label_bit`. Distinct items are counted within `memory` bytes;
  // the rest is spilled into `spill_folder`, which only this counter may use.
  EventCounter(std::uint8_t label_bit, Path spill_folder, std::int64_t memory);
  void add(const EventTable& events);
  // Call it once, at the end.
  EventCounts counts();

 private:
  std::uint8_t label_bit_;
  DistinctCounter items_;
  EventCounts counts_;  // all but the items
  std::optional<std::int64_t> last_user_;
};

}  // namespace hstu
