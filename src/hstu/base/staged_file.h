// A file that gets its name when it is complete, also when several programs write it at the same time.
#pragma once

#include "hstu/base/files.h"

namespace hstu {

// Write into temporary(), close that file, then commit(), which fsyncs it. Without commit() the destructor
// removes it. The temporary file is PATH.partial, locked by the process that writes it; it has the number of
// the process in its name where the file system has no locks.
class StagedFile {
 public:
  enum class Existing {
    refuse,   // UsageError if the file exists or another program is writing it, now and at commit()
    replace,  // waits for another program that is writing it; the last one's content remains
  };
  // Throws Error if the file cannot be created.
  StagedFile(Path path, Existing existing);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  const Path& path() const { return path_; }
  const Path& temporary() const { return temporary_; }
  void commit();

 private:
  bool lock();
  void refuse_existing() const;

  Path path_, temporary_;
  Existing existing_;
  int lock_ = -1;  // the open temporary file
  bool committed_ = false;
};

}  // namespace hstu
