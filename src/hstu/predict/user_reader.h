// Reads a table of users whose next items are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hstu/dataset/dataset.h"
#include "hstu/predict/columns.h"
#include "hstu/predict/csv_reader.h"

namespace hstu {

struct UserRequest {
  std::string id;  // the column request; without it the number of the row, from 1
  std::int64_t user = 0;
  std::string user_text;             // of the table
  std::optional<std::int64_t> time;  // seconds; none: after the user's last event
};

class UserReader {
 public:
  // The file has the column user, and optionally time and request. Throws UsageError for a missing column.
  // `since_1970`: TimeColumn::since_1970.
  UserReader(const Path& file, const ColumnNames& names, const Dataset& dataset, bool since_1970);

  // Reads the next row; false at the end. Throws Error naming file, line and column of what is wrong.
  bool next(UserRequest& request);

 private:
  CsvReader rows_;
  std::optional<TimeColumn> time_;
  std::optional<std::size_t> request_;
  std::size_t user_;
  bool user_texts_;
};

}  // namespace hstu
