// Counts events that nothing but the order of the log puts behind the event before them.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>

#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

class TieCounter {
 public:
  // Events in order of (user, time), over all calls.
  void add(const EventTable& events);
  Ties ties() const;

 private:
  std::optional<std::tuple<std::int64_t, std::int64_t, std::int64_t>> last_;  // user, time, nanoseconds
  bool last_tied_ = false;  // the last event with the one before it
  Ties ties_;
};

}  // namespace hstu
