// From an event log to a dataset on disk: reads, sorts, splits and writes in one stream.
#pragma once

#include <optional>

#include "hstu/base/files.h"
#include "hstu/dataset/anchor_index.h"
#include "hstu/dataset/manifest.h"
#include "hstu/events/dictionaries.h"
#include "hstu/events/prepare_options.h"
#include "hstu/events/schema.h"
#include "hstu/mlcommons/mlcommons_writer.h"
#include "hstu/prepare/append.h"

namespace hstu {

// Reads the log in folder `input` according to `schema` and writes the dataset `output`, completely or not at
// all. The bytes of the dataset depend on the log and the schema alone. A log in order of (user, time) is
// read once; any other is sorted, which temporarily takes space beside the dataset. Throws UsageError if
// `output` exists or the schema does not fit the files, Error if the log is empty or damaged or the output
// cannot be written. Texts of `known` keep their codes. The dataset has the index of anchors `index`, if one
// is given; that it would have no anchor causes a note, not an error.
Manifest prepare(const Schema& schema, const Path& input, const Path& output,
                 const PrepareOptions& options = {}, const Dictionaries& known = {},
                 const std::optional<AnchorRule>& index = {});

// Reads a log as above and adds its events to `dataset` as a segment, completely or not at all; nothing else
// of the dataset changes. Texts keep their codes and get further ones, and the segment has every index of
// anchors that the first one has. The work grows with the log, the distinct items and the users of the
// dataset. A log that is the last segment already adds nothing: the append may have been killed right after
// it was complete. UsageError, and no segment, if the dataset has a split by time or another schema, or all
// of the events elsewhere; NoEventsError if the log has none.
AppendReport append(const Schema& schema, const Path& input, const Path& dataset,
                    const PrepareOptions& options = {});

// Reads Yambda's log in folder `input` and writes its train events in MLCommons' layout (mlcommons_writer.h):
// the folder `output` with hstu_cache_L.../ and item_popularity.npy. Otherwise as above.
MlcommonsCounts prepare_mlcommons(const Path& input, const Path& output, const SplitRule& split,
                                  const MlcommonsOptions& layout, const PrepareOptions& options = {});

}  // namespace hstu
