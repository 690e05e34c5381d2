#include "hstu/comm/local_ranks.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

// Shell scripts take the place of ranks; the word --join=RANK/... is their $0.
TEST(LocalRanks, ARankThatEndsBeforeAllHaveMetEndsAllAtOnce) {
  const std::string script = "case $0 in --join=1/*) exit 3;; *) exec sleep 1000;; esac";
  EXPECT_EQ(run_local_ranks(3, "/bin/sh", {"sh", "-c", script}, 1000), 3);
}

TEST(LocalRanks, AfterTheMeetingOtherRanksHaveTimeToEnd) {
  // The fifth number of --join is the descriptor that a rank closes when it has met the others.
  const std::string script =
      "IFS=/; set -- $0; eval \"exec $5>&-\"; sleep 0.3; [ $1 = --join=1 ] && exit 3; sleep 0.3; exit 75";
  EXPECT_EQ(run_local_ranks(3, "/bin/bash", {"bash", "-c", script}, 1000), 3);
}

TEST(LocalRanks, ARankThatHangsIsKilled) {
  const std::string script =
      "IFS=/; set -- $0; eval \"exec $5>&-\"; sleep 0.3; [ $1 = --join=1 ] && exit 3; exec sleep 1000";
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run_local_ranks(2, "/bin/bash", {"bash", "-c", script}, 0.3), 3);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("rank 0 did not end within 0 s"),
            std::string::npos);
}

}  // namespace
}  // namespace hstu
