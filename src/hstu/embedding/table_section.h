// The checkpoint sections of embedding tables.
#pragma once

#include <span>
#include <vector>

#include "hstu/checkpoint/section.h"
#include "hstu/embedding/saved_table.h"
#include "hstu/embedding/table_set.h"

namespace hstu {

nlohmann::json to_json(const RowCounts& counts);

// Adds the rows in the table's range to a table without rows, with their optimizer's state or with one of
// zeros. The changes of `saved`, if it has some, are those after a begin_changes().
void restore_rows(EmbeddingTable& table, const SavedTable& saved, bool with_state);
// The same with other ids: new_ids[id], -1 for a row to leave out, as are those beyond the list. No two rows
// may get one id. All rows are old: none is a change.
void restore_rows(EmbeddingTable& table, const SavedTable& saved, bool with_state,
                  std::span<const std::int64_t> new_ids);

// One section "tables/NAME" per table, in their order: the existing rows, by ascending id. Loading refuses a
// table with fewer ids, another seed or optimizer; one with more ids keeps the initial values of the first
// size (EmbeddingTable::first_size). The table must be empty. A section with a base has only the rows that
// changed since TableSet::begin_changes(), which must have been called when the base was whole, and the ids
// of those that are gone. `tables` must outlive the sections.
//
// Split tables (table_set.h) are saved by rank 0, whole: while it saves, the other ranks are in serve_rows().
// Every rank loads its own rows, so that a checkpoint does not depend on the number of ranks.
std::vector<Section> table_sections(TableSet& tables);

}  // namespace hstu
