// The quotes of CSV text, followed byte by byte: Arrow reads text behind a closing quote as part of the
// field.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hstu/columns/csv_format.h"

namespace hstu {

// Where each field and each record begins. Lines and records count from 1; blank lines are no records.
class CsvScanner {
 public:
  // `fields` of a record: a quoted field with line breaks and at least as many delimiters as a record may be
  // several records that stray quotes have joined (joined()).
  CsvScanner(const CsvFormat& format, char delimiter, std::int64_t fields);

  // Examines the bytes that follow. False at the first byte that is neither a delimiter, a line end nor a
  // quote behind a closing quote; the scanner then remains at this byte.
  bool scan(std::string_view block);
  // Examines the bytes that follow up to the beginning of a record; false if it is not among them.
  bool scan_to(std::int64_t record, std::string_view block);

  bool is_open() const { return state_ == State::kQuoted; }  // inside of quotes
  std::int64_t offset() const { return offset_; }            // bytes examined
  std::int64_t opened() const { return opened_; }            // offset of the last quote that began a field
  std::int64_t line() const { return line_; }                // that scan_to() has reached

  // Offset of the first quoted field that looks like several records, and how many there are.
  struct Joined {
    std::int64_t first = 0, fields = 0;
  };
  std::optional<Joined> joined() const;

 private:
  enum class State { kStart, kPlain, kQuoted, kClosing };  // of a field; kClosing: a quote inside of quotes
  bool step(char c);
  bool ends_field(char c) const { return c == delimiter_ || c == '\n' || c == '\r'; }
  std::size_t skip(std::string_view block);
  void close_field();

  char delimiter_;
  std::optional<char> quote_, escape_;
  std::int64_t fields_;
  State state_ = State::kStart;
  bool escaped_ = false, blank_ = true;
  std::int64_t offset_ = 0, opened_ = 0, line_ = 1, records_ = 0;
  std::int64_t breaks_ = 0, delimiters_ = 0;  // in the quoted field so far
  Joined joined_;
};

}  // namespace hstu
