// The checkpoint sections of embedding tables.
#pragma once

#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

// One section "tables/NAME" per table, in their order: the existing rows, by ascending id. Loading refuses a
// table of another size, seed or optimizer; the table must be empty. `tables` must outlive the sections.
std::vector<Section> table_sections(TableSet& tables);

}  // namespace hstu
