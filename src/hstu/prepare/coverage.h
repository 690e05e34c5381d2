// How many items of a log have a value of an attribute: a mapping of other ids gives none, and nothing else
// shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/dataset/dataset.h"
#include "hstu/events/schema.h"

namespace hstu {

struct Coverage {
  std::string attribute;
  std::int64_t items = 0, mapped = 0;  // distinct items that were looked at, and those with a value
};

// Of each attribute, for the items of about four million events at most, in blocks at equal distances.
// `sampled`: these were not all events.
std::vector<Coverage> coverage_of(const Dataset& dataset, bool* sampled = nullptr);

// A warning for each mapping file that has a value for less than a tenth of the items, with ids of both
// sides. `files`: of the log.
std::vector<std::string> coverage_mistakes(const Schema& schema, const Path& input,
                                           const std::vector<Path>& files, const Dataset& dataset);

}  // namespace hstu
