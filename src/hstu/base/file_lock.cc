#include "hstu/base/file_lock.h"

#include <cerrno>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/terminal.h"

namespace hstu {

FileLock::FileLock(const Path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot create {}: {}", path.string(), std::strerror(errno));
  held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  if (held_ || errno == EWOULDBLOCK) return;
  const int error = errno;
  if (error == ENOLCK || error == ENOSYS || error == ENOTSUP || error == EINVAL) {
    print_note("note: {}: this file system has no locks ({}): do not let two programs write there\n",
               path.string(), std::strerror(error));
    held_ = true;
    return;
  }
  ::close(descriptor_);
  fail("cannot lock {}: {}", path.string(), std::strerror(error));
}

FileLock::~FileLock() {
  ::close(descriptor_);
}

void FileLock::wait() {
  while (!held_) {
    held_ = ::flock(descriptor_, LOCK_EX) == 0;
    if (!held_ && errno != EINTR) fail("cannot lock {}: {}", path_.string(), std::strerror(errno));
  }
}

bool FileLock::wait_for(std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kPause{20};
  for (; !held_ && time.count() > 0; time -= kPause) {
    std::this_thread::sleep_for(kPause);
    held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  }
  return held_;
}

}  // namespace hstu
