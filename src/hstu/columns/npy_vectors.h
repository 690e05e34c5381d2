// Vectors in files of NumPy as Parquet: for hstu export, which links no Arrow.
#pragma once

#include <cstdint>

#include "hstu/base/files.h"
#include "hstu/columns/parquet_vectors.h"

namespace hstu {

// The inverse of write_vectors: writes `rows` (n, D) of f32 and `ids` (n) of i64 as a Parquet file with the
// columns, an int64 and a list of D floats of fixed size, 65,536 rows at a time. Returns n. Throws Error
// naming the file that has another form.
std::int64_t write_vectors_as_parquet(const Path& rows, const Path& ids, const VectorColumns& columns,
                                      const Path& parquet);

}  // namespace hstu
