// One trainer a run: a lock on RUN/lock, in which its holder has written who it is.
#pragma once

#include "hstu/base/file_lock.h"

namespace hstu {

class RunLock {
 public:
  // Takes the lock and writes this process's number and host into `file`. UsageError naming those of the
  // holder when somebody has it. A file left by a process that is gone does not count.
  explicit RunLock(const Path& file);

 private:
  FileLock lock_;
};

}  // namespace hstu
