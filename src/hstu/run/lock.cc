#include "hstu/run/lock.h"

#include <cerrno>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

std::string this_process() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("process {} on {}", ::getpid(), host);
}

}  // namespace

RunLock::RunLock(const Path& file) : lock_(file) {
  // A process that was just killed holds its lock until the system has released its memory.
  if (!lock_.wait_for(std::chrono::seconds(2))) {
    std::ifstream text(file);
    std::string holder;
    if (!std::getline(text, holder)) holder = "another process";
    fail_usage("{} is being trained by {}: wait for it, end it, or choose another run",
               file.parent_path().string(), holder);
  }
  // The text only serves messages: if the disk is full, the lock is held without it.
  std::ofstream(file, std::ios::trunc) << this_process() << "\n";
}

bool is_being_trained(const Path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  // Shared: it does not keep the trainer of a run that begins at this moment from its lock for long, which
  // tries again.
  const bool held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(descriptor);
  return held;
}

}  // namespace hstu
