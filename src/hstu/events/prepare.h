// From an event log to a dataset on disk: read, split, order, write.
#pragma once

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/schema.h"

namespace hstu {

// Reads the log in folder `input` as `schema` says and writes the dataset `output`, whole or not at all.
// Memory is proportional to the number of events. Throws UsageError when `output` exists or the schema does
// not fit the files, Error when the log is empty, damaged, or cannot be written.
Manifest prepare(const Schema& schema, const Path& input, const Path& output);

}  // namespace hstu
