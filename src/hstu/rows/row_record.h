// The layout of a table in a GPU's memory: a record for each row, in chunks of 2^shift records, and an index.
#pragma once

#include <bit>
#include <cstdint>

#include "hstu/rows/row_shape.h"

namespace hstu {

inline constexpr std::int64_t kRowHeaderBytes = 32;
inline constexpr std::int64_t kIndexEntryBytes = 16;
inline constexpr std::int64_t kLeastIndexEntries = 1024;

// The header and the stored row.
constexpr std::int64_t record_bytes(const RowShape& shape) {
  return kRowHeaderBytes + stored_floats(shape) * std::int64_t{sizeof(float)};
}

// Chunks of at most 8 MiB, and not of more rows than the table has.
constexpr int chunk_shift(const RowShape& shape) {
  constexpr std::int64_t kChunkBytes = std::int64_t{8} << 20;
  int shift = 0;
  while ((record_bytes(shape) << (shift + 1)) <= kChunkBytes && (std::int64_t{1} << shift) < shape.rows)
    ++shift;
  return shift;
}

// A power of two of entries, of which `rows` are at most half.
constexpr std::int64_t index_entries(std::int64_t rows) {
  const auto entries = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(2 * rows)));
  return entries < kLeastIndexEntries ? kLeastIndexEntries : entries;
}

// The records of `rows` rows alone.
constexpr std::int64_t records_bytes(const RowShape& shape, std::int64_t rows) {
  const int shift = chunk_shift(shape);
  return ((rows + (std::int64_t{1} << shift) - 1) >> shift) * (record_bytes(shape) << shift);
}

// Of `rows` rows with their index. A table that still grows holds up to an eighth more.
constexpr std::int64_t table_bytes(const RowShape& shape, std::int64_t rows) {
  return records_bytes(shape, rows) + index_entries(rows) * kIndexEntryBytes;
}

}  // namespace hstu
