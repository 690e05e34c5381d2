#include "hstu/report/sparkline.h"

#include <vector>

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Sparkline, DrawsFromTheSmallestToTheLargest) {
  EXPECT_EQ(sparkline(std::vector<double>{}, 10), "");
  EXPECT_EQ(sparkline(std::vector<double>{3}, 10), "▅");
  EXPECT_EQ(sparkline(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 10), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(std::vector<double>{1, -1}, 10), "█▁");
}

TEST(Sparkline, DrawsMeansOfGroupsWhenThereAreTooManyValues) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 2, 9, 9, 4, 6}, 3), "▁█▅");
  EXPECT_EQ(sparkline(std::vector<double>(1000, 1.0), 4), "▅▅▅▅");
}

}  // namespace
}  // namespace hstu
