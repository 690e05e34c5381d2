// A lock between processes, on a file.
#pragma once

#include <chrono>

#include "hstu/base/files.h"

namespace hstu {

// The lock is held until the object is destroyed or the process ends in any way. The file is created if it is
// missing and is never removed; its existence has no meaning.
class FileLock {
 public:
  explicit FileLock(const Path& path);  // tries once; Error if the file cannot be created
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return held_; }  // false: another process holds it
  void wait();                         // returns when the lock is held
  // Tries again for up to `time`; returns held().
  bool wait_for(std::chrono::milliseconds time);

 private:
  Path path_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace hstu
