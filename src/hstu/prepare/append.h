// Adds new events to a dataset as a segment (dataset/segments.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// What a segment that is about to be added came to.
struct AppendReport {
  Manifest segment;             // its own
  bool repeated = false;        // the dataset has the segment already, as its last one
  std::int64_t new_users = 0;   // without events before
  std::int64_t late = 0;        // events before the last that their user had
  std::int64_t duplicates = 0;  // events that the user had already: the same time, item and actions
  std::vector<std::string> rules_before = {}, rules_now = {};  // those that the other does not have
};

// What the segment in `staged`, whose columns are complete, adds to `dataset`: the counts of both together.
// It writes the distinct items that are new into the segment, and describes them in `segment`.
Extension extension_of(const Dataset& dataset, const Path& staged, Manifest& segment);

// Compares the events of the last segment with those of their users before it.
AppendReport report_of(const Dataset& dataset);

// Whether two segments have the same columns, but for the list of items that are new: an item is new once.
bool has_same_events(const Manifest& one, const Manifest& other);

// Throws UsageError naming the difference unless `segment`, of a log that is to be appended, has the schema
// of `before`.
void check_continues(const Manifest& before, const Path& dataset, const Manifest& segment);

}  // namespace hstu
