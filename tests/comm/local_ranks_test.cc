#include "hstu/comm/local_ranks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/files.h"
#include "temporary_folder.h"

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

TEST(LocalRanks, TheTokenIsInNoWordOfACommandAndTheSameForAll) {
  const Path folder = temporary_folder();
  const std::string script =
      fmt::format("echo $0 >> {0}/words; IFS=/; set -- $0; cat /proc/self/fd/$6 > {0}/token_${{1#--join=}}",
                  folder.string());
  EXPECT_EQ(run_local_ranks(2, "/bin/bash", {"bash", "-c", script}, 1000), 0);
  EXPECT_THAT(read_file(folder / "words"),
              ::testing::MatchesRegex("(--join=[01]/2/[0-9]+/-?[0-9]+/[0-9]+/[0-9][0-9]?\n)+"));
  EXPECT_EQ(read_file(folder / "token_0").size(), 16u);
  EXPECT_EQ(read_file(folder / "token_0"), read_file(folder / "token_1"));
}

}  // namespace
}  // namespace hstu
