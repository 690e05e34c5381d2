// The files of a log, and what they say about it before anything of it is read.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/event_extractor.h"

namespace hstu {

// A part of a file that one thread reads by itself: a row group, or all of a text file.
struct LogPiece {
  std::size_t file, group;
};

struct LogFiles {
  std::vector<Path> files;
  std::vector<LogPiece> pieces;  // in the order of the log
  std::int64_t rows = 0;         // 0: not known
  // From the statistics in the files:
  std::optional<std::int64_t> last_time;  // seconds; absent where some piece does not say it
  bool unordered = false;                 // some piece surely holds an earlier user than a piece before it
};

// The files that the schema's patterns name: patterns in their order, files of one pattern in byte order.
// Each is opened, so that a missing column shows before hours of reading. UsageError for a pattern that no
// file matches and for columns that do not fit.
LogFiles find_log(const EventExtractor& extractor, const Path& input);

// The time of the last event (seconds), from reading all times; for files that do not say it.
std::int64_t find_last_time(const LogFiles& log, const EventExtractor& extractor);

}  // namespace hstu
