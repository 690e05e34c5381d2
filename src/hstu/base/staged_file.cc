#include "hstu/base/staged_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "hstu/base/folders.h"

namespace hstu {
namespace {

// Whether the open file still has this name: the process that held the lock before may have renamed it.
bool has_name(int descriptor, const Path& path) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

}  // namespace

StagedFile::StagedFile(Path path, Existing existing)
    : path_(std::move(path)), temporary_(path_.string() + ".partial"), existing_(existing) {
  check_output_file(path_);
  refuse_existing();
  while (!lock()) continue;
}

void StagedFile::refuse_existing() const {
  if (existing_ == Existing::refuse && std::filesystem::exists(std::filesystem::symlink_status(path_)))
    fail_usage("the output file {} already exists: choose another name or remove it first", path_.string());
}

// False if the file was committed or removed while this process waited for its lock.
bool StagedFile::lock() {
  lock_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) fail("cannot write {}: {}", path_.string(), failure_reason(errno));
  int result = 0;
  do result = ::flock(lock_, existing_ == Existing::refuse ? LOCK_EX | LOCK_NB : LOCK_EX);
  while (result != 0 && errno == EINTR);
  if (result == 0 && has_name(lock_, temporary_)) {
    try {
      refuse_existing();  // the program that had the lock until now may have committed
    } catch (...) {
      ::unlink(temporary_.c_str());
      ::close(std::exchange(lock_, -1));
      throw;
    }
    return true;
  }
  const bool busy = result != 0 && errno == EWOULDBLOCK;
  ::close(std::exchange(lock_, -1));
  if (busy) fail_usage("another program is writing {}: wait for it or choose another name", path_.string());
  if (result == 0) return false;
  // Without locks every program has a name of its own, and nobody writes under this one.
  ::unlink(temporary_.c_str());
  temporary_ = fmt::format("{}.{}.partial", path_.string(), ::getpid());
  return true;
}

StagedFile::~StagedFile() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void StagedFile::commit() {
  sync_file(temporary_);
  int result = -1;
  if (existing_ == Existing::refuse) {
    result = ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
    if (result != 0 && errno == EEXIST)
      fail_usage(
          "{} exists since this program began: another program has written it, and this output is removed",
          path_.string());
  }
  // Some file systems cannot refuse an existing name.
  if (result != 0 && (existing_ == Existing::replace || errno == EINVAL || errno == ENOSYS))
    result = ::rename(temporary_.c_str(), path_.c_str());
  if (result != 0)
    fail("cannot rename {} to {}: {}", temporary_.string(), path_.string(), std::strerror(errno));
  committed_ = true;
  sync_folder(path_.parent_path());
}

}  // namespace hstu
