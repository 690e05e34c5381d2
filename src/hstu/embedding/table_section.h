// The parts of checkpoints that embedding tables and the counts of bad ids give.
#pragma once

#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/embedding/bad_ids.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

// One section "tables/NAME" a table, in their order: the rows that exist, by ascending id. Loading refuses a
// table of another size, seed or optimizer; the table must be empty. `tables` must outlive the sections.
std::vector<Section> table_sections(TableSet& tables);

// Section "bad_ids": what was counted, by feature.
Section bad_ids_section(BadIds& bad_ids);

}  // namespace hstu
