// JSON lines: one object per line, appended during a run; complete lines survive a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

// Appends lines; write() passes each to the file with one system call. Only one process may write a file.
class JsonLinesWriter {
 public:
  // Creates the file or appends to it. An incomplete last line (after a crash or a full disk) is removed
  // first.
  explicit JsonLinesWriter(Path path);
  ~JsonLinesWriter();
  JsonLinesWriter(const JsonLinesWriter&) = delete;
  JsonLinesWriter& operator=(const JsonLinesWriter&) = delete;
  // Throws Error naming the file if the line cannot be written completely; the file then ends before it.
  void write(const Json& line);
  // When it returns, the lines written so far are on the disk. Throws Error naming the file.
  void sync();

 private:
  Path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;  // bytes of complete lines
};

// Every line of a file. An incomplete last line is ignored; any other line that is not JSON is an Error
// naming file and line.
std::vector<Json> read_json_lines(const Path& path);

// Truncates the file after the last line for which `is_last` is true. Returns the number of lines removed, or
// nothing if there is no such line; the file is then unchanged.
std::optional<std::int64_t> cut_lines_behind(const Path& path,
                                             const std::function<bool(const Json&)>& is_last);

}  // namespace hstu
