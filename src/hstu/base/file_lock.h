// A lock between processes, on a file.
#pragma once

#include <chrono>

#include "hstu/base/files.h"

namespace hstu {

// Held until destroyed, or until the process ends in whatever way. The file is made where it is missing,
// stays behind, and means nothing by itself.
class FileLock {
 public:
  explicit FileLock(const Path& path);  // Error when the file cannot be made; held() tells what came of it
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return held_; }  // false: somebody else holds it
  void wait();                         // until it is held
  // Tries again for so long; gives held().
  bool wait_for(std::chrono::milliseconds time);

 private:
  Path path_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace hstu
