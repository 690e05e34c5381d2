#include "hstu/base/calendar.h"

#include <limits>

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Calendar, KnowsTheYearOfAnyTime) {
  EXPECT_EQ(calendar_year(0), 1970);
  EXPECT_EQ(calendar_year(-1), 1969);
  EXPECT_EQ(calendar_year(631'151'999), 1989);
  EXPECT_EQ(calendar_year(631'152'000), 1990);
  EXPECT_EQ(calendar_year(4'133'980'799), 2100);
  EXPECT_EQ(calendar_year(4'133'980'800), 2101);
  EXPECT_EQ(calendar_date(1'700'000'000), "2023-11-14");
  EXPECT_GT(calendar_year(std::numeric_limits<std::int64_t>::max()), 1'000'000);
  EXPECT_LT(calendar_year(std::numeric_limits<std::int64_t>::min()), -1'000'000);
}

TEST(Calendar, FindsTheUnitOfATime) {
  std::int64_t factor = 1;
  for (const char* unit : {"s", "ms", "us", "ns"}) {
    const auto fitting = fitting_unit(1'700'000'000 * factor);
    ASSERT_TRUE(fitting.has_value()) << unit;
    EXPECT_EQ(fitting->unit, unit);
    EXPECT_EQ(fitting->year, 2023);
    factor *= 1000;
  }
  for (const std::int64_t none : {std::int64_t{0}, std::int64_t{26'000'000}, std::int64_t{-5}})
    EXPECT_FALSE(fitting_unit(none).has_value()) << none;
}

TEST(Calendar, ReadsIso8601) {
  for (const char* text : {"2023-11-14T22:13:20Z", "2023-11-14 22:13:20", "2023-11-14T22:13:20.999Z",
                           "2023-11-15T00:13:20+02:00", "2023-11-14T17:43:20-0430", "2023-11-14T23:13:20+01"})
    EXPECT_EQ(seconds_of_iso(text), 1'700'000'000) << text;
  EXPECT_EQ(seconds_of_iso("2024-05-01"), 1'714'521'600);
  EXPECT_EQ(seconds_of_iso("2024-02-29T12:30"), 1'709'209'800);
  EXPECT_EQ(seconds_of_iso("1969-12-31T23:59:59.5"), -1);
  for (const char* text :
       {"", "2024", "2024-5-1", "2023-02-29", "2024-13-01", "2024-05-01T", "2024-05-01T24:00",
        "2024-05-01T12:60", "2024-05-01T12:30:00.Z", "2024-05-01T12:30:00+", "2024-05-01T12:30:00+25",
        "2024-05-01X", "2024-05-01Z", "2024-05-01T12:30:00Z ", "+024-05-01", "2024-05-01T-1:30"})
    EXPECT_FALSE(seconds_of_iso(text).has_value()) << text;
}

}  // namespace
}  // namespace hstu
