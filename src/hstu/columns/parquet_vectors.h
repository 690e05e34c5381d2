// Vectors in Parquet as files of NumPy: for hstu import, which links no Arrow.
#pragma once

#include <cstdint>
#include <string>

#include "hstu/base/files.h"

namespace hstu {

// The columns of a Parquet file: ids of a type of integers, or texts by which a log names its users or items
// (id_of_text), and lists of one length (of variable or of fixed
// size) of float or double.
struct VectorColumns {
  std::string id, vector;
};

// Writes `rows` (n, D) of f32 and `ids` (n) of i64 as .npy files, in the order of the table, a row group at a
// time. Returns n. Throws UsageError for columns that do not exist, Error naming file, column and row for
// nulls, lists of different lengths and ids beyond 63 bits.
std::int64_t write_vectors(const Path& parquet, const VectorColumns& columns, const Path& rows,
                           const Path& ids);

}  // namespace hstu
