// JSON lines: one object a line, appended for as long as a run lasts, still whole after a crash.
#pragma once

#include <cstdint>
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

// Before a run goes on from `step`: removes the lines whose "step" is later, for they will be written again.
// Lines without a "step" stay. The file is replaced as a whole. Gives the number of lines removed.
std::int64_t remove_lines_after(const Path& path, std::int64_t step);

}  // namespace hstu
