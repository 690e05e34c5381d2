#include "hstu/base/file_lock.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hstu/base/staged_file.h"
#include "temporary_folder.h"

namespace {
int refused = 0;  // the error of every lock; 0: the system's own
}  // namespace

// Replaces the C library's, as some network file systems would answer.
extern "C" int flock(int descriptor, int operation) noexcept {
  if (refused == 0) return static_cast<int>(::syscall(SYS_flock, descriptor, operation));
  errno = refused;
  return -1;
}

namespace hstu {
namespace {

TEST(FileLock, IsHeldByOneAtATime) {
  const Path file = temporary_folder() / "lock";
  const FileLock first(file);
  EXPECT_TRUE(first.held());
  EXPECT_FALSE(FileLock(file).held());
}

TEST(FileLock, IsNotedWhereTheFileSystemHasNone) {
  const Path file = temporary_folder() / "lock";
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    refused = error;
    testing::internal::CaptureStderr();
    const FileLock lock(file);
    refused = 0;
    EXPECT_TRUE(lock.held());
    EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("this file system has no locks"));
  }
}

TEST(StagedFile, LeavesNothingElseWhereTheFileSystemHasNoLocks) {
  const Path folder = temporary_folder();
  refused = ENOLCK;
  {
    StagedFile file(folder / "scores.csv", StagedFile::Existing::refuse);
    write_file(file.temporary(), "1");
    file.commit();
  }
  refused = 0;
  EXPECT_EQ(read_file(folder / "scores.csv"), "1");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace hstu
