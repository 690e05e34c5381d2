#include "hstu/report/trace_events.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hstu {
namespace {

std::int64_t nanoseconds(double ms) {
  return std::llround(ms * 1e6);
}
// The format counts microseconds.
double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1000;
}

Json name_of_track(const char* kind, std::size_t process, std::size_t thread, const std::string& name) {
  return {{"ph", "M"}, {"name", kind}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

Json range_of(const TraceEvent& event, std::size_t process, std::size_t thread) {
  const std::int64_t begin = nanoseconds(event.begin_ms), end = nanoseconds(event.end_ms);
  Json json{{"ph", "X"},     {"name", event.name},        {"pid", process},
            {"tid", thread}, {"ts", microseconds(begin)}, {"dur", microseconds(end - begin)}};
  if (!event.arguments.is_null()) json["args"] = event.arguments;
  return json;
}

Json counter_of(const TraceCounter& counter, std::size_t process, const std::string& name) {
  return {{"ph", "C"},
          {"name", name},
          {"pid", process},
          {"ts", microseconds(nanoseconds(counter.at_ms))},
          {"args", {{"value", counter.value}}}};
}

}  // namespace

std::string trace_events_json(std::span<const TraceTrack> tracks) {
  std::vector<std::string> processes;
  std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  const char* separator = "\n";
  const auto add = [&](const Json& event) {
    text += separator + event.dump();
    separator = ",\n";
  };
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    const TraceTrack& track = tracks[t];
    const auto known = std::find(processes.begin(), processes.end(), track.process);
    const auto process = static_cast<std::size_t>(known - processes.begin()) + 1;
    if (known == processes.end()) {
      processes.push_back(track.process);
      add(name_of_track("process_name", process, t + 1, track.process));
    }
    for (const TraceCounter& counter : track.counters) add(counter_of(counter, process, track.thread));
    if (!track.counters.empty()) continue;
    add(name_of_track("thread_name", process, t + 1, track.thread));
    for (const TraceEvent& event : track.events) add(range_of(event, process, t + 1));
  }
  return text + "\n]}\n";
}

}  // namespace hstu
