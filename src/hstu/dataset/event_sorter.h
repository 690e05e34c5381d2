// Sorts any number of events by (user, time to the nanosecond) in bounded memory: an external merge sort.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/event_merge.h"

namespace hstu {

class EventSorter {
 public:
  // Keeps tables of at most `memory` bytes in total; beyond that, runs are spilled into `folder`, which is
  // created when it is needed and removed by the destructor.
  EventSorter(Path folder, std::int64_t memory);
  ~EventSorter();
  EventSorter(const EventSorter&) = delete;
  EventSorter& operator=(const EventSorter&) = delete;

  // A table of ordered events; tables arrive in the order of the log: for events of equal user and time those
  // of the earlier table come first.
  void append(EventTable events);
  // Passes all events in order to `sink`. Call it once, at the end. `advance` receives the number of events
  // merged so far.
  void merge_into(EventSink& sink, const std::function<void(std::int64_t)>& advance);

  std::int64_t events() const { return events_; }

 private:
  using Sources = std::vector<std::unique_ptr<EventSource>>;
  Path new_run();
  void spill();
  Sources take_tables();
  Sources open_runs(std::size_t first, std::size_t count) const;
  void merge_runs_until_few();

  Path folder_;
  std::int64_t memory_, table_events_ = 1;
  std::vector<EventTable> tables_;
  std::int64_t bytes_ = 0, events_ = 0, spilled_ = 0;
  std::vector<Path> runs_;  // in the order of the log
  std::size_t runs_made_ = 0;
};

}  // namespace hstu
