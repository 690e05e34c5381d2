// Reads requests: for a user at a time, the items to score.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hstu/predict/columns.h"
#include "hstu/predict/csv_reader.h"

namespace hstu {

struct Request {
  std::int64_t number = 0;  // of the row, from 1
  std::string id;           // the column request; without it the number
  std::int64_t user = 0, time = 0;
  std::vector<std::int64_t> items;    // candidates in their order; empty: those of a catalogue
  std::vector<std::int64_t> context;  // in the order of the dataset's context columns; 0 where not asked for
};

class RequestReader {
 public:
  // `context`: the dataset's context columns; the file must have those that `needed` marks. The file has a
  // column of items or of lists of candidates, and neither if there is a catalogue. Throws UsageError naming
  // the column that is missing or not expected.
  RequestReader(const Path& file, ColumnNames names, std::span<const std::string> context,
                const std::vector<bool>& needed, bool catalogue);

  // Reads the next request; false at the end. Throws Error naming file, line and column of what is wrong.
  bool next(Request& request);

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t optional_column(const std::string& name) const;

  CsvReader rows_;
  TimeStep time_step_;
  std::size_t user_, time_, request_, item_, candidates_;
  std::vector<std::size_t> context_;  // kNone: not needed
};

// The items of a catalogue file, in its order. Throws Error if it has none or one twice.
std::vector<std::int64_t> read_catalogue(const Path& file, const ColumnNames& names);

}  // namespace hstu
