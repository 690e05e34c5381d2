// Leaves out rows of a log before they become events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hstu/columns/column_source.h"
#include "hstu/events/schema.h"

namespace hstu {

// Rows that were left out.
struct DroppedRows {
  std::int64_t nulls = 0;   // null in a column of drop_null
  std::int64_t others = 0;  // not one of those, and a condition of `keep` does not hold
  std::int64_t sum() const { return nulls + others; }
  void add(const DroppedRows& part);
};

// The rows with a null in a column of the schema's drop_null, and those that do not satisfy its `keep`.
class RowFilter {
 public:
  // Keeps a reference to `schema`.
  explicit RowFilter(const Schema& schema) : schema_(schema) {}

  bool active() const { return !schema_.drop_null.empty() || !schema_.keep.empty(); }
  std::vector<std::string> columns() const;  // that it reads, each once

  // Removes rows from a batch that has at least columns(). UsageError if a condition does not fit its column.
  DroppedRows apply(RawBatch& batch) const;

 private:
  const Schema& schema_;
};

}  // namespace hstu
