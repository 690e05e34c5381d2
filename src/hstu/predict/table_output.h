// Writes a table of text fields: a CSV file, or a Parquet file that hstu-prepare makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/predict/converter.h"

namespace hstu {

// The file gets its name when it is complete: until commit() it is PATH.partial, which the destructor
// removes.
class TableOutput {
 public:
  enum class Type { integer, real, text };  // in Parquet
  struct Column {
    std::string name;
    Type type;
  };
  // Throws UsageError if the file exists, Error if it cannot be written.
  TableOutput(Path path, const std::vector<Column>& columns);
  ~TableOutput();
  TableOutput(const TableOutput&) = delete;
  TableOutput& operator=(const TableOutput&) = delete;

  // Appends a field to the current row; a text is quoted where CSV asks for it.
  void put(std::string_view text);
  void put(std::int64_t number);
  void put(float number);  // the shortest digits that read back as the same float
  void end_row();
  void commit();

 private:
  void begin_field();
  void flush();

  Path path_, staging_;
  std::optional<OutputFile> file_;
  std::optional<Converter> converter_;
  std::string buffer_;
  bool row_is_empty_ = true, committed_ = false;
};

}  // namespace hstu
