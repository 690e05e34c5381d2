// Fields of lines of text, one after another: a line may be longer than memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hstu/base/files.h"

namespace arrow::io {
class InputStream;
}

namespace hstu {

// A field that is no empty text.
struct LineField {
  std::string text;
  std::int64_t line = 0;    // from 1
  std::int64_t number = 0;  // in the line, from 1
};

// "log.txt: line 3: field 2"
std::string place_of(const Path& file, const LineField& field);

// The beginning of a value of a file, for messages.
std::string shown_value(const std::string& text);

class FieldReader {
 public:
  // A file as it is or compressed by gzip, zstd or bzip2. `delimiter`: a blank means any number of blanks and
  // tabs; blanks around another delimiter are no part of a field. `header`: skips the first line that is not
  // blank.
  FieldReader(Path file, char delimiter, bool header);
  ~FieldReader();

  // The next field; false at the end. Blank lines have none. Error naming file and line for an empty field, a
  // field of more than 4 KiB, and a file that is damaged.
  bool next(LineField& field);

  const Path& file() const { return file_; }

 private:
  int take();  // the next byte, -1 at the end
  int look();  // the same, without taking it
  bool fill();
  void skip_header();
  bool begin_field();  // false at the end
  bool is_delimiter(int byte) const;

  Path file_;
  char delimiter_;
  bool header_;
  std::shared_ptr<arrow::io::InputStream> input_;
  std::string block_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, fields_ = 0;  // of the line so far
  bool owed_ = false;                   // a delimiter was the last byte: a field must follow
};

}  // namespace hstu
