// Allows one trainer per run: a lock on RUN/lock, in which the holder writes its process number and host.
#pragma once

#include "hstu/base/file_lock.h"

namespace hstu {

class RunLock {
 public:
  // Acquires the lock and writes this process's number and host into `file`. UsageError naming those of the
  // holder if another process holds it. A file left by a process that has ended holds no lock.
  explicit RunLock(const Path& file);

 private:
  FileLock lock_;
};

// Whether a process trains the run whose lock this file is.
bool is_being_trained(const Path& file);

}  // namespace hstu
