// Makes a dataset from MLCommons' prepared cache without copying its columns.
#pragma once

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// Makes the dataset `output`, completely or not at all: symbolic links to the cache's item ids, timestamps,
// is_organic and user ids; user offsets; one byte of actions per event; running counts; attributes from the
// two mappings in `metadata`; and the anchor index of the cache's min_history in windows of a day, compared
// with every position and time of the cache. Throws UsageError if `output` exists, Error naming
// a file of the cache that is missing, truncated, or contradicts another one.
Manifest import_mlcommons(const Path& cache, const Path& metadata, const Path& output);

}  // namespace hstu
