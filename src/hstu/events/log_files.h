// The files of a log and the statistics that they contain, available before reading the events.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/event_extractor.h"

namespace hstu {

// A part of a file that one thread reads: a row group, or a whole text file.
struct LogPiece {
  std::size_t file, group;
};

struct LogFiles {
  std::vector<Path> files;
  std::vector<LogPiece> pieces;  // in the order of the log
  std::int64_t rows = 0;         // 0: not known
  std::set<std::string> texts;   // ids, contexts and attributes that are texts
  // From the statistics in the files:
  std::optional<std::int64_t> last_time;  // seconds; absent if a piece lacks it
  bool unordered = false;                 // a piece certainly has an earlier user than a piece before it
};

// The files that match the schema's patterns: patterns in their order, files of one pattern in byte order.
// Each is opened, so that a missing column is detected before hours of reading. UsageError for a pattern
// without a matching file and for columns of the wrong type.
LogFiles find_log(const EventExtractor& extractor, const Path& input);

// The time of the last event (seconds), found by reading all times; for files without statistics.
std::int64_t find_last_time(const LogFiles& log, const EventExtractor& extractor);

}  // namespace hstu
