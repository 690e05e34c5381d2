#include "hstu/device/gpu_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(GpuCondition, WarnsOfWhatChangesFigures) {
  GpuCondition c;
  c.name = "NVIDIA H100", c.clock = 990, c.max_clock = 1980, c.power_limit = c.default_power_limit = 700;
  c.held_back = 0x1 | 0x4;  // idle, at the power limit: as every GPU that works
  EXPECT_EQ(warning_of(c), "");
  EXPECT_THAT(reasons_of(c), ::testing::ElementsAre("power limit"));
  c.held_back = 0x2;
  EXPECT_THAT(warning_of(c), ::testing::HasSubstr("NVIDIA H100: its clocks are set to 990 of 1980 MHz"));
  c.held_back = 0x80;
  EXPECT_THAT(warning_of(c), ::testing::HasSubstr("halved the clocks"));
  c.held_back = 0, c.power_limit = 400;
  EXPECT_THAT(warning_of(c), ::testing::HasSubstr("its power limit is 400 W instead of 700 W"));
  c.default_power_limit.reset();
  EXPECT_EQ(warning_of(c), "") << "the driver does not say";
  EXPECT_TRUE(to_json(c).at("default_power_limit_w").is_null());
  EXPECT_NO_THROW(gpu_conditions());
}

}  // namespace
}  // namespace hstu
