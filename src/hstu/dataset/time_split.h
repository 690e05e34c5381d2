// The split of a log by time: a train interval, a gap, and a held-out test interval at the end.
#pragma once

#include <cstdint>

#include "hstu/dataset/event_table.h"

namespace hstu {

struct SplitRule {
  std::int64_t train_days = 300;
  std::int64_t gap_minutes = 30;
  std::int64_t test_days = 1;  // 0: no split, every event is a train event
  bool operator==(const SplitRule&) const = default;
};

// Boundaries for a log whose last event is at `last` (seconds): the test interval ends there, the train
// interval ends a gap before it. All intervals are half-open, so events at `last` itself fall in neither.
TimeSplit split_boundaries(std::int64_t last, const SplitRule& rule);

struct SplitEvents {
  TimeSplit boundaries;
  EventTable train;
  EventTable test;  // only of users that have train events
};

// Splits a log that is not empty; rule.test_days > 0. Throws UsageError when no train event is left.
SplitEvents split_events(EventTable events, const SplitRule& rule);

}  // namespace hstu
