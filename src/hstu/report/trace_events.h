// Times as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open: the JSON form of Chrome's trace
// events. Format: "Trace Event Format", Google, 2016: complete events ("X"), counters ("C") and metadata
// ("M").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/base/json.h"

namespace hstu {

// A range of time. Milliseconds since the beginning of the trace.
struct TraceEvent {
  std::string name;
  double begin_ms = 0, end_ms = 0;
  Json arguments = nullptr;  // an object that the viewer shows; null: none
};

// A number from a moment on, which the viewer draws as a curve.
struct TraceCounter {
  double at_ms = 0;
  std::int64_t value = 0;
};

// One line of the viewer. Ranges of a track nest or are apart.
struct TraceTrack {
  std::string process, thread;  // "hstu", "loader 0"; tracks of one process are shown together
  std::vector<TraceEvent> events;
  std::vector<TraceCounter> counters = {};  // of the process, under the name of the thread; then no events
};

// The text of the file. Times are rounded to nanoseconds, which keeps nested ranges nested.
std::string trace_events_json(std::span<const TraceTrack> tracks);

}  // namespace hstu
