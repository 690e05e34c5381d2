// From an event log to a dataset on disk: read, order, split, write, all in one stream.
#pragma once

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/prepare_options.h"
#include "hstu/events/schema.h"
#include "hstu/mlcommons/mlcommons_writer.h"

namespace hstu {

// Reads the log in folder `input` as `schema` says and writes the dataset `output`, whole or not at all. The
// dataset's bytes depend on the log and the schema alone. A log that is in order of (user, time) is read
// once; any other is sorted, which takes space beside the dataset until it is done. Throws UsageError when
// `output` exists or the schema does not fit the files, Error when the log is empty, damaged, or cannot be
// written.
Manifest prepare(const Schema& schema, const Path& input, const Path& output,
                 const PrepareOptions& options = {});

// Reads Yambda's log in folder `input` and writes its train events in MLCommons' layout (mlcommons_writer.h):
// the folder `output` with hstu_cache_L.../ and item_popularity.npy. Otherwise as above.
MlcommonsCounts prepare_mlcommons(const Path& input, const Path& output, const SplitRule& split,
                                  const MlcommonsOptions& layout, const PrepareOptions& options = {});

}  // namespace hstu
