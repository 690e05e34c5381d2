// A whole log in order of (user, time), its train events alone, within a bound of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/event_extractor.h"
#include "hstu/events/log_files.h"
#include "hstu/events/prepare_options.h"

namespace hstu {

// What a stream leaves behind, besides what its sink was given.
struct StreamedLog {
  std::optional<TimeSplit> split;
  std::optional<EventCounts> test_events;
  std::vector<ItemAttribute> attributes;  // of the schema, in its order, all equally long
};

class LogStream {
 public:
  // Sorting spills into folders below `scratch`, which is there and has room for them.
  LogStream(const EventExtractor& extractor, const Path& input, Path scratch, const PrepareOptions& options);

  // Whether the files' statistics say that the log is in another order.
  bool unordered() const { return log_.unordered; }
  // Space that sorting and columns of `event_bytes` an event take (bytes, about); 0 where the number of
  // events is not known.
  std::int64_t expected_bytes(bool sort, std::int64_t event_bytes) const;

  // Hands the train events to `sink`, as the log has them, or sorted. Nothing when they were to be taken as
  // they are and turn out to be in another order: then `sink` is of no use any more. UsageError when no train
  // event is left, Error when the log is empty or damaged.
  std::optional<StreamedLog> run(bool sort, EventSink& sink) const;

 private:
  std::optional<TimeSplit> split() const;

  const EventExtractor& extractor_;
  Path input_, scratch_;
  PrepareOptions options_;
  LogFiles log_;
};

}  // namespace hstu
