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

// Reads a run block by block.
class RunReader : public EventSource {
 public:
  enum class AtEnd { remove, keep };  // the file
  explicit RunReader(Path path, AtEnd at_end = AtEnd::remove);
  bool next(EventTable& events) override;

 private:
  void read(void* bytes, std::size_t size);

  Path path_;
  AtEnd at_end_;
  std::ifstream input_;
};

}  // namespace hstu
