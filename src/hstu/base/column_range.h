#pragma once

#include <cstdint>

namespace hstu {

// Columns [begin, end) of a matrix.
struct ColumnRange {
  std::int64_t begin = 0, end = 0;

  std::int64_t width() const { return end - begin; }
  bool operator==(const ColumnRange&) const = default;
};

}  // namespace hstu
