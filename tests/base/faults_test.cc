#include "hstu/base/faults.h"

#include <csignal>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& words) {
  try {
    parse_faults(std::vector{words});
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Faults, EndTheProgramAtTheNamedPointAndCount) {
  EXPECT_EXIT(
      {
        watch_fault_points(parse_faults(std::vector<std::string>{"end:1", "save.rename:2"}));
        for (const char* point : {"save.rename", "save.begin", "open"}) fault_point(point);
        fprintf(stderr, "still here\n");
        fault_point("save.rename");
      },
      testing::KilledBySignal(SIGKILL), "still here");
  EXPECT_EXIT(
      {
        watch_fault_points(parse_faults(std::vector<std::string>{"open:1:term"}));
        fault_point("open");
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(Faults, NobodyWatchesUnlessAskedTo) {
  EXPECT_FALSE(fault_points_are_watched());
  int passed = 0;
  watch_fault_points([&](std::string_view) { ++passed; });
  fault_point("open");
  watch_fault_points({});
  fault_point("open");
  EXPECT_EQ(passed, 1);
}

TEST(Faults, WrongWordsAreNamed) {
  EXPECT_THAT(error_of("save.renme:1"), HasSubstr("save.rename"));
  EXPECT_THAT(error_of("open"), HasSubstr("POINT:COUNT"));
  EXPECT_THAT(error_of("open:0"), HasSubstr("\"0\""));
  EXPECT_THAT(error_of("open:1x"), HasSubstr("\"1x\""));
  EXPECT_THAT(error_of("open:1:stop"), HasSubstr("stop"));
}

}  // namespace
}  // namespace hstu
