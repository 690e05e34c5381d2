// The columns of a dataset that belong to items and not to events.
#pragma once

#include "hstu/base/files.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// Adds the item attributes of `from` and the names of items and codes, of all its segments together, to the
// dataset that was just written into `folder`, and writes its manifest again. Names of users are left out: a
// request has its user's.
void add_item_columns(const Dataset& from, const Path& folder, Manifest manifest);

}  // namespace hstu
