#include "hstu/run/balance_window.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

DivisionFigures division_of(std::vector<std::int64_t> before, std::vector<std::int64_t> after) {
  DivisionFigures division;
  division.work_of_slices = std::move(before), division.work = std::move(after);
  return division;
}

TEST(BalanceWindow, HasTheMeansOfTheLatestSteps) {
  BalanceWindow window(2), off(0);
  EXPECT_TRUE(window.json().is_null());
  window.add(division_of({30, 10}, {20, 20}));  // leaves the window
  window.add(division_of({30, 10}, {24, 16}));
  window.add({});  // one rank
  window.add(division_of({28, 12}, {20, 20}));
  const Json json = window.json();
  EXPECT_EQ(json.at("steps"), 2);
  EXPECT_DOUBLE_EQ(json.at("before").get<double>(), (1.5 + 1.4) / 2);
  EXPECT_DOUBLE_EQ(json.at("after").get<double>(), (1.2 + 1.0) / 2);
  EXPECT_DOUBLE_EQ(json.at("worst_after").get<double>(), 1.2);
  off.add(division_of({30, 10}, {20, 20}));
  EXPECT_TRUE(off.json().is_null());
}

}  // namespace
}  // namespace hstu
