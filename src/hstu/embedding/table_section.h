// The checkpoint sections of embedding tables.
#pragma once

#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

nlohmann::json to_json(const RowCounts& counts);

// One section "tables/NAME" per table, in their order: the existing rows, by ascending id. Loading refuses a
// table of another size, seed or optimizer; the table must be empty. `tables` must outlive the sections.
//
// Split tables (table_set.h) are saved by rank 0, whole: while it saves, the other ranks are in serve_rows().
// Every rank loads its own rows, so that a checkpoint does not depend on the number of ranks.
std::vector<Section> table_sections(TableSet& tables);

}  // namespace hstu
