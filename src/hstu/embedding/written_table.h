// Writes the rows of a table without the optimizer's state, in the form that SavedTable reads.
//
// `description`: of the section, without counts. A table whose "dtype" is bf16 has its rows in bf16 if it
// names an optimizer, as tables of checkpoints do; rows for other programs are f32.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "hstu/checkpoint/section.h"
#include "hstu/embedding/saved_table.h"

namespace hstu {

// `ids` ascend; row(i): the D values of the row of ids[i].
void write_rows(SectionWriter& writer, nlohmann::json description, const std::vector<std::int64_t>& ids,
                const std::function<std::span<const float>(std::size_t i)>& row);

void write_whole(SectionWriter& writer, nlohmann::json description, const SavedTable& table);

// The rows of `now` of which a bit is another than in `before`, and the ids of rows that left.
void write_changes(SectionWriter& writer, nlohmann::json description, const SavedTable& before,
                   const SavedTable& now);

}  // namespace hstu
