// Reads the rows of a CSV table one after the other, in constant memory. docs/predict.md has the rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hstu/predict/byte_source.h"

namespace hstu {

// RFC 4180: a header line with the names of the columns, fields separated by commas, fields in double quotes
// where they contain commas, quotes (doubled) or line ends. Lines end with LF or CR LF. Strict: every row has
// a field for each column, and a quote begins or ends a field.
class CsvReader {
 public:
  // Reads the header. Throws Error naming the source if there is none, or if a name is empty or occurs twice.
  explicit CsvReader(ByteSource source);

  const std::vector<std::string>& columns() const { return columns_; }
  // The index of a column. Throws UsageError with the nearest name if there is none.
  std::size_t column(std::string_view name) const;
  bool has_column(std::string_view name) const;

  // Moves to the next row; false at the end. Throws Error naming source and line of a row that is not CSV.
  bool next();
  // A field of the current row; valid until next().
  std::string_view field(std::size_t column) const { return fields_[column]; }
  // A field as a whole number. Throws Error naming source, line, column and text.
  std::int64_t integer(std::size_t column) const;
  // Rows so far, the current one included.
  std::int64_t rows() const { return rows_; }
  // "requests.csv line 2: column time"
  std::string place(std::size_t column) const;
  // Throws Error naming source, line and column of the current row.
  [[noreturn]] void refuse(std::size_t column, const std::string& problem) const;

 private:
  bool read_record();
  bool read_line(std::size_t from);
  void split_plain(std::string_view rest);
  void split_quoted();
  void expect_fields() const;
  [[noreturn]] void refuse_line(const std::string& problem) const;

  ByteSource source_;
  std::string buffer_;           // what was read and not used yet
  std::size_t begin_ = 0;        // of the current record in buffer_
  std::size_t record_end_ = 0;   // behind the record without its line end
  std::size_t next_ = 0;         // behind its line end
  bool ended_ = false;           // the source has no more bytes
  std::int64_t line_ = 0;        // on which the current record begins, from 1
  std::int64_t lines_read_ = 0;  // that end before next_
  std::int64_t rows_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::string_view> fields_;
  std::string unquoted_;  // the text of fields in quotes
};

}  // namespace hstu
