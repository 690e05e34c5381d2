#include "hstu/run/lock.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

TEST(RunLock, ASecondHolderIsRefusedNamingTheFirst) {
  const Path file = temporary_folder() / "lock";
  const RunLock first(file);
  try {
    const RunLock second(file);
    FAIL() << "two processes may train one run";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(fmt::format("process {} on ", ::getpid())));
  }
}

TEST(RunLock, ThatOfAKilledProcessDoesNotBlock) {
  const Path file = temporary_folder() / "lock";
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(file);
    std::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(read_file(file), ::testing::HasSubstr(std::to_string(child))) << "its file still exists";
  EXPECT_NO_THROW(RunLock{file});
}

}  // namespace
}  // namespace hstu
