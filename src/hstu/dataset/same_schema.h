// Whether a model that was trained on one dataset can read another one.
#pragma once

#include "hstu/base/files.h"
#include "hstu/dataset/manifest.h"

namespace hstu {

// Throws UsageError naming the first difference and both folders unless `other` has the actions (names, bits
// and order), the label and the pools of `known`, all its context columns and item attributes, the same texts
// behind the codes of text columns, and ids of the same kind.
void check_same_schema(const Manifest& known, const Path& known_folder, const Manifest& other,
                       const Path& other_folder);

}  // namespace hstu
