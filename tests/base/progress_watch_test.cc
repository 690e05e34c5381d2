#include "hstu/base/progress_watch.h"

#include <chrono>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sanitizers.h"

namespace hstu {
namespace {

using ::testing::HasSubstr;

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

TEST(ProgressWatch, SaysOnceWhereAStepIsAndThatItGoesOn) {
  ::testing::internal::CaptureStderr();
  {
    ProgressWatch watch("rank 3: ", 0.2);
    watch.beat(6, "lookup");
    sleep_for(1.5);
    watch.beat(6, "forward");
  }
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(words, HasSubstr("rank 3: step 7 has made no progress for 0.2 s in the stage \"lookup\""));
  // The thread sanitizer delays signals until a thread makes a call that it knows.
  if (!kThreadSanitized) {
    EXPECT_THAT(words, HasSubstr("test_base + 0x"));  // this thread
  }
  EXPECT_THAT(words, HasSubstr("rank 3: step 7 goes on after "));
  EXPECT_EQ(words.find("no progress"), words.rfind("no progress"));
}

TEST(ProgressWatch, ExpectsNothingBeforeTheFirstBeatNorAtRest) {
  ::testing::internal::CaptureStderr();
  {
    ProgressWatch watch("", 0.1);
    sleep_for(0.3);
    watch.beat(0, "lookup");
    watch.rest();
    sleep_for(0.3);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace hstu
