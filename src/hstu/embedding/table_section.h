// The sections of checkpoints that embedding tables give.
#pragma once

#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

// One section "tables/NAME" a table, in their order: the rows that exist, by ascending id. Loading refuses a
// table of another size, seed or optimizer; the table must be empty. `tables` must outlive the sections.
std::vector<Section> table_sections(TableSet& tables);

}  // namespace hstu
