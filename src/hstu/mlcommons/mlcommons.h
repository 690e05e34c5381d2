// A dataset out of MLCommons' prepared cache, without a copy of its columns.
#pragma once

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// Makes the dataset `output`, whole or not at all: symbolic links to the cache's item ids, timestamps,
// is_organic and user ids; user offsets; one byte of actions an event; running counts; attributes from the
// two mappings in `metadata`; and the anchor index of the cache's min_history in windows of a day, compared
// with the cache's own positions and times one by one. Throws UsageError when `output` exists, Error naming
// the file of the cache that is missing, torn, or at odds with another one.
Manifest import_mlcommons(const Path& cache, const Path& metadata, const Path& output);

}  // namespace hstu
