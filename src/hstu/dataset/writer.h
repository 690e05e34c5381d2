// Writes a dataset folder: NumPy columns, user-major and chronological, and the manifest last.
#pragma once

#include <span>

#include "hstu/base/files.h"
#include "hstu/dataset/event_table.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// Orders `events` by user and time and writes every column, then the manifest, into the existing folder
// `folder` (a StagedFolder's, so that a failure leaves nothing behind). `description` says what the bits and
// columns mean (name, split, actions, label, pools, context, test_events); counts, time, attributes, columns
// and id are filled in. Returns the manifest as written. Throws Error naming the file that could not be
// written.
Manifest write_dataset(const Path& folder, Manifest description, const EventTable& events,
                       std::span<const ItemAttribute> attributes);

// Size of all columns, bytes.
std::int64_t dataset_bytes(const Manifest& manifest);

}  // namespace hstu
