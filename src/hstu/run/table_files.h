// Rows of tables for other programs: exports of a run, whole or the changes since an earlier one, and what is
// made of them. docs/tables.md
//
// An export has the form of a checkpoint that has tables alone, without optimizer. Its `source` is the
// checkpoint that it was made from. An export of changes names the source of the one that it follows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

struct TableExportOptions {
  Path run, output;
  std::string checkpoint = {};  // a step or "best"; "": the newest
  // Only what changed since a checkpoint: of this run the one of a step, or the folder of any, such as the
  // one that a warm start began with. "": every row.
  std::string since = {};
};

// Writes the folder options.output, which appears when it is complete. Returns a summary. Throws UsageError
// if the folder exists, the run has no such checkpoint, or a table of the run is not in it with its width.
Json export_tables(const TableExportOptions& options);

// Applies exports of changes in order to a whole one, and writes the rows as a whole export, which the next
// changes can follow. Throws Error naming the export that is missing, out of order, damaged, or of another
// run.
Json join_exports(const std::vector<Path>& exports, const Path& output);

// Rows from elsewhere, in any order: `rows` (n, D) of f32 or f64 and `ids` (n) of i32 or i64, as .npy files,
// or ids as a text file with a name on each line, by which the log names users or items (id_of_text).
struct NpyRows {
  std::string table;
  Path rows, ids;
};
// Writes them as a whole export, for `hstu train --warm-start`, with the dense parameters of the safetensors
// file `dense` (F32, under the names of docs/model.md), or "": none. Throws Error naming file and row or
// tensor if an id is negative or occurs twice, or a value is not finite.
Json import_npy(const std::vector<NpyRows>& tables, const Path& output, const Path& dense = {});

}  // namespace hstu
