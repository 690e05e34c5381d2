// The train events of a whole log in order of (user, time), in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hstu/base/error.h"
#include "hstu/columns/text_codes.h"
#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"
#include "hstu/dataset/names_writer.h"
#include "hstu/events/dictionaries.h"
#include "hstu/events/event_extractor.h"
#include "hstu/events/item_attributes.h"
#include "hstu/events/log_files.h"
#include "hstu/events/prepare_options.h"

namespace hstu {

// A log has no rows, or none that is an event.
class NoEventsError : public Error {
 public:
  using Error::Error;
};

// The results of a stream, besides the events that its sink received.
struct StreamedLog {
  std::optional<TimeSplit> split;
  std::optional<EventCounts> test_events;
  TimeRange time;       // of all events of the log, dropped ones included
  RuleMatches matches;  // of all events of the log
  ItemAttributes::Result attributes;
  bool hashed_users = false, hashed_items = false;        // their ids are hashes of texts
  std::unique_ptr<NameCollector> user_names, item_names;  // those that the schema keeps
  std::vector<std::optional<Vocabulary>> contexts;        // of the schema, in its order; absent: integers
  std::vector<std::string> remarks;                       // warnings about the files
  NullWordCounts user_nulls, item_nulls;                  // events whose id is a word for null
  DroppedRows dropped;                                    // rows that are no events
  std::optional<FilterReport> filters;                    // events that were left out by counts
};

class LogStream {
 public:
  // Sorting spills into folders below `scratch`, which must exist and have enough space. Texts of `known`
  // keep their codes.
  LogStream(const EventExtractor& extractor, const Path& input, Path scratch, const PrepareOptions& options,
            Dictionaries known = {});

  const std::vector<Path>& files() const { return log_.files; }
  // Whether the log is in another order according to the statistics of its files.
  bool unordered() const { return log_.unordered; }
  // The approximate space in bytes for sorting and for columns of `event_bytes` per event; 0 if the number of
  // events is not known.
  std::int64_t expected_bytes(bool sort, std::int64_t event_bytes) const;

  // Passes the train events to `sink`, in the order of the log or sorted, and the test events of their users
  // to `test`. Returns nothing if they were not to be sorted and are in another order; the sinks must then be
  // discarded. UsageError if there is no train event, NoEventsError if
  // the log has no event, Error if it is damaged.
  std::optional<StreamedLog> run(bool sort, EventSink& sink, EventSink* test = nullptr) const;

 private:
  std::optional<TimeSplit> split() const;

  const EventExtractor& extractor_;
  Path input_, scratch_;
  PrepareOptions options_;
  Dictionaries known_;
  LogFiles log_;
};

}  // namespace hstu
