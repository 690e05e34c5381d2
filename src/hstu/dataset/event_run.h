// Runs: ordered events on disk while a log is sorted.
#pragma once

#include <cstdint>
#include <fstream>

#include "hstu/base/files.h"
#include "hstu/dataset/event_merge.h"

namespace hstu {

// Writes a run: every table becomes a block of its columns in their current widths. Not fsynced: runs are
// temporary.
class RunWriter : public EventSink {
 public:
  explicit RunWriter(const Path& path) : file_(path) {}
  void append(EventTable events) override;
  void close() { file_.flush(); }

 private:
  OutputFile file_;
};

// Reads a run block by block and removes the file at the end.
class RunReader : public EventSource {
 public:
  explicit RunReader(Path path);
  bool next(EventTable& events) override;

 private:
  void read(void* bytes, std::size_t size);

  Path path_;
  std::ifstream input_;
};

}  // namespace hstu
