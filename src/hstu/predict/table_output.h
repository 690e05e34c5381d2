// Writes a table of text fields: a CSV file, standard output, or a Parquet file that hstu-prepare makes of
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/staged_file.h"
#include "hstu/predict/converter.h"

namespace hstu {

// Where a table is written: a new file, which this process alone writes (base/staged_file.h), or standard
// output, which "-" names.
class TablePlace {
 public:
  // Throws UsageError if the file exists or another program is writing it, Error if it cannot be written.
  explicit TablePlace(const Path& path);

  bool is_standard_output() const { return !file_; }
  std::string name() const { return file_ ? file_->path().string() : "standard output"; }
  // The file, as long as it is written.
  const Path& temporary() const { return file_->temporary(); }
  bool is_parquet() const;
  void commit();

 private:
  std::optional<StagedFile> file_;
};

// A file gets its name when it is complete: without commit() the destructor removes it.
class TableOutput {
 public:
  enum class Type { integer, real, text };  // in Parquet
  struct Column {
    std::string name;
    Type type;
  };
  // `place` must outlive the output.
  TableOutput(TablePlace& place, const std::vector<Column>& columns);
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
  void write_to(int descriptor);

  TablePlace& place_;
  std::optional<OutputFile> file_;
  std::optional<Converter> converter_;
  std::string buffer_;
  bool row_is_empty_ = true;
};

}  // namespace hstu
