// Events of a table as a dataset: the histories of requests.
#pragma once

#include <vector>

#include "hstu/dataset/dataset.h"
#include "hstu/predict/columns.h"

namespace hstu {

// Writes the events of `file` as a dataset into the existing folder `folder`, with the actions, context
// columns and item attributes of `schema`; any number of events in bounded memory. Columns: user, item, time,
// action (the names of its actions with | between them, or the sum of their bits), and the context columns
// that `needed` marks; the others are 0. Returns the number of texts of these that the schema does not have:
// read as 0. Throws Error naming file, line and column of what is wrong.
std::int64_t write_events(const Path& file, const ColumnNames& names, const Dataset& schema,
                          const std::vector<bool>& needed, const Path& folder);

// Writes a dataset without events into the existing folder `folder`: the actions, the range of times, names
// of columns and item attributes of `schema`.
void write_schema(const Dataset& schema, const Path& folder);

}  // namespace hstu
