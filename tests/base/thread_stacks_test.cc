#include "hstu/base/thread_stacks.h"

#include <latch>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sanitizers.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ThreadStacks, NamesEveryThreadButTheCallingOneAndWhereItIs) {
  std::latch end(1), begun(1);
  std::jthread waiting([&] {
    name_this_thread("waits for a latch");  // 15 characters are kept
    begun.count_down();
    end.wait();
  });
  begun.wait();
  name_this_thread("asks");
  const std::string stacks = thread_stacks();
  end.count_down();
  EXPECT_THAT(stacks, HasSubstr("thread waits for a lat ("));
  // The thread sanitizer delays signals until a thread makes a call that it knows.
  if (!kThreadSanitized) {
    EXPECT_THAT(stacks, HasSubstr("test_base + 0x"));
  }
  EXPECT_THAT(stacks, Not(HasSubstr("thread asks")));
}

TEST(ThreadStacks, NamesAThreadThatBlocksTheSignalWithoutItsCalls) {
  std::latch end(1), begun(1);
  std::jthread deaf([&] {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    name_this_thread("deaf");
    begun.count_down();
    end.wait();
  });
  begun.wait();
  const std::string stacks = thread_stacks();
  end.count_down();
  EXPECT_THAT(stacks, ::testing::ContainsRegex("thread deaf \\([0-9]+\\):\n  \\(does not answer\\)\n"));
}

// A call that the question interrupts goes on: the signal restarts it.
TEST(ThreadStacks, LeavesAReadThatWaits) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::latch begun(1);
  char byte = 0;
  ssize_t count = -1;
  std::jthread reader([&] {
    begun.count_down();
    count = ::read(ends[0], &byte, 1);
  });
  begun.wait();
  thread_stacks();
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  reader.join();
  EXPECT_EQ(count, 1);
  EXPECT_EQ(byte, 'x');
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace hstu
