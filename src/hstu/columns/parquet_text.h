// Parquet as CSV and CSV as Parquet, through pipes: for hstu, which links no Arrow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// Writes the rows of a Parquet file as CSV (RFC 4180) with a header line to the descriptor, batch by batch.
// Lists become their elements with spaces between them, nulls empty fields, timestamps and dates the number
// of `time_steps` (per second) since 1970, rounded down. Columns of other nested types are left out, with a
// note on stderr. Throws Error naming the file.
void write_as_csv(const Path& parquet, std::int64_t time_steps, int descriptor);

// Writes the CSV text of standard input as a Parquet file. A column has the type int64 or float if it is one
// of `integers` or `reals`, string if it is one of `texts`; otherwise its values decide. Throws Error naming
// the file.
struct TableTypes {
  std::vector<std::string> integers, reals, texts;
};
void write_as_parquet(const TableTypes& types, const Path& parquet);

}  // namespace hstu
