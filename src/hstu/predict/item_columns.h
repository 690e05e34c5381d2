// The columns of a dataset that belong to items and not to events.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/dataset/dataset.h"
#include "hstu/dataset/manifest.h"
#include "hstu/predict/columns.h"
#include "hstu/predict/table_output.h"

namespace hstu {

// Adds the item attributes of `from` and the names of items and codes, of all its segments together, to the
// dataset that was just written into `folder`, and writes its manifest again. Names of users are left out: a
// request has its user's.
void add_item_columns(const Dataset& from, const Path& folder, Manifest manifest);

// Items of a dataset, `ids`, by their names if it has them.
Items with_names(const std::vector<std::int64_t>& ids, const Dataset& dataset);

// The type of a column of ids of `of`, "user" or "item", in tables that are written: texts where ids are
// hashes of texts.
TableOutput::Type id_column_type(const Manifest& manifest, const char* of);

}  // namespace hstu
