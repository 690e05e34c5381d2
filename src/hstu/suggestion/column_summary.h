// What a column contains, for messages and for guesses about its meaning.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/columns/column_source.h"

namespace hstu {

// Of some rows of a column.
struct ColumnSummary {
  std::string name, type_name;
  RawColumn::Kind kind = RawColumn::Kind::kInteger;
  std::int64_t rows = 0, nulls = 0;
  std::int64_t distinct = 0;  // values other than null
  double min = 0, max = 0;    // of numbers, rounded
  std::string range;          // the same with all digits: "0 to 40"
  bool whole = false;         // real numbers without fractions: integers with nulls, as pandas writes them
  std::vector<std::string> texts;  // the most frequent texts first; of equal frequency in byte order

  // "buy, view, ... (7 texts)" or "0 to 40"
  std::string text() const;
};

ColumnSummary summarize(const RawColumn& column);

// Of the first rows of a file, one batch, for the named columns. The values of CSV files decide about their
// kinds.
std::vector<ColumnSummary> summarize_columns(const Path& file, std::span<const std::string> columns,
                                             const ReadOptions& options);

}  // namespace hstu
