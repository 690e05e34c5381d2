// The order of events at the same time, and times of logs that have an order alone.
#pragma once

#include <cstdint>

#include "hstu/events/event_stage.h"

namespace hstu {

// Puts the events of a user at the same time (to the nanosecond) into a random order, which depends on the
// seed, the user, the time and the number of events alone.
class TieShuffle : public EventStage {
 public:
  static constexpr std::int64_t kMostTogether = std::int64_t{1} << 20;

  // More than `most` events at a time are shuffled in parts of that many.
  TieShuffle(std::int64_t seed, EventSink& next, std::int64_t most = kMostTogether)
      : EventStage(next), seed_(seed), most_(most) {}
  void append(EventTable events) override;
  void finish() override;

 private:
  void shuffle_and_pass(const EventTable& events, std::int64_t end);

  std::int64_t seed_, most_;
  EventTable held_;         // of one user at one time, or none
  std::int64_t parts_ = 0;  // of that time, which have been passed on
};

// Numbers the events of each user 0, 1, 2, ...: their times.
class OrderTimes : public EventStage {
 public:
  explicit OrderTimes(EventSink& next) : EventStage(next) {}
  void append(EventTable events) override;
  void finish() override {}

 private:
  std::int64_t user_ = -1, next_time_ = 0;
};

}  // namespace hstu
