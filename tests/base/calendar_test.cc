#include "hstu/base/calendar.h"

#include <limits>

#include <gtest/gtest.h>

#include "support/iso_texts.h"

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

TEST(Calendar, KnowsTimesOfAnotherUnit) {
  EXPECT_EQ(other_unit(1'700'000'000'000, "s")->unit, "ms");
  EXPECT_EQ(other_unit(1'700'000'000, "ms")->unit, "s");
  EXPECT_FALSE(other_unit(1'700'000'000'000, "ms").has_value());
  EXPECT_FALSE(other_unit(4'200'000'000, "s").has_value()) << "a year after 2100, in any unit";
}

TEST(Calendar, ReadsIso8601) {
  for (const IsoText& expected : iso_texts()) {
    const auto time = parse_iso_time(expected.text);
    ASSERT_TRUE(time.has_value()) << expected.text;
    EXPECT_EQ(time->seconds, expected.seconds) << expected.text;
    EXPECT_EQ(time->nanoseconds, expected.nanoseconds) << expected.text;
  }
  for (const std::string& text : texts_that_are_no_times())
    EXPECT_FALSE(parse_iso_time(text).has_value()) << text;
  for (const char* number : {"", "2024"}) EXPECT_FALSE(parse_iso_time(number).has_value()) << number;
}

}  // namespace
}  // namespace hstu
