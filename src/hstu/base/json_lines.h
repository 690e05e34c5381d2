// JSON lines: one object a line, appended for as long as a run lasts, still whole after a crash.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/base/json.h"

namespace hstu {

// Appends lines; each reaches the file with one system call, before write() returns. One process writes a
// file.
class JsonLinesWriter {
 public:
  // Creates the file or goes on behind its last line. A torn last line (a crash, a full disk) is removed
  // first.
  explicit JsonLinesWriter(Path path);
  ~JsonLinesWriter();
  JsonLinesWriter(const JsonLinesWriter&) = delete;
  JsonLinesWriter& operator=(const JsonLinesWriter&) = delete;
  // Throws Error naming the file when the line cannot be written whole; the file then ends before it.
  void write(const Json& line);
  // The lines written so far are on the disk when it returns. Throws Error naming the file.
  void sync();

 private:
  Path path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;  // bytes of whole lines
};

// Every line of a file. A torn last line is left out; another line that is not JSON is an Error naming file
// and line.
std::vector<Json> read_json_lines(const Path& path);

// Removes what follows the last line end; gives the number of bytes removed.
std::int64_t remove_torn_line(const Path& path);

// Cuts the file behind its last line for which `is_last` holds: that line and those before it stay. Gives the
// number of lines removed; nothing, and the file stays as it is, when no line holds.
std::optional<std::int64_t> cut_lines_behind(const Path& path,
                                             const std::function<bool(const Json&)>& is_last);

}  // namespace hstu
