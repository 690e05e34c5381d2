// The split of a log by time: a train interval, a gap, and a held-out test interval at the end.
#pragma once

#include <cstdint>
#include <optional>

#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

struct SplitRule {
  std::int64_t train_days = 300;
  std::int64_t gap_minutes = 30;
  std::int64_t test_days = 1;  // 0: no split, every event is a train event
  bool operator==(const SplitRule&) const = default;
};

// Boundaries for a log whose last event is at `last` (seconds): the test interval ends there, and the train
// interval ends one gap before the test interval. All intervals are half-open, so events at `last` are in
// neither.
TimeSplit split_boundaries(std::int64_t last, const SplitRule& rule);

// Forwards the train events of a log, and the test events of users that have train events.
class TimeSplitter : public EventSink {
 public:
  // Both sinks must outlive the splitter.
  TimeSplitter(const TimeSplit& split, EventSink& train, EventSink& test);
  void append(EventTable events) override;

 private:
  TimeSplit split_;
  EventSink& train_;
  EventSink& test_;
  std::optional<std::int64_t> last_train_user_;  // Train events of a user come before the test events.
};

}  // namespace hstu
