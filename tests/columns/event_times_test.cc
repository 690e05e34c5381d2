#include "hstu/columns/event_times.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "support/iso_texts.h"

namespace hstu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = RawColumn::Kind;

EventTimes times_of_texts(const std::vector<std::string>& texts, TimeUnit unit = TimeUnit::kSeconds) {
  RawBatch batch;
  batch.file = "log.csv";
  RawColumn column;
  column.name = "at";
  column.kind = Kind::kText;
  column.texts = texts;
  for (std::size_t i = 0; i < texts.size(); ++i) column.integers.push_back(static_cast<std::int64_t>(i));
  return times_of(batch, column, unit);
}

EventTimes times_of_numbers(const std::vector<std::int64_t>& integers, TimeUnit unit) {
  RawColumn column;
  column.integers = integers;
  return times_of({}, column, unit);
}

TEST(EventTimes, ReadIso8601) {
  const EventTimes times = times_of_texts({"1970-01-02", "1970-01-01 00:00:01", "1970-01-01T00:00:01.25Z",
                                           "1970-01-01T02:00:00+02:00", "1969-12-31T23:59:59.999999999"});
  EXPECT_THAT(times.seconds, ElementsAre(86'400, 1, 1, 0, -1));
  EXPECT_THAT(times.nanoseconds, ElementsAre(0, 0, 250'000'000, 0, 999'999'999));
}

TEST(EventTimes, ReadTheTextsThatPredictReads) {
  for (const IsoText& expected : iso_texts()) {
    const EventTimes times = times_of_texts({expected.text});
    EXPECT_EQ(times.seconds.front(), expected.seconds) << expected.text;
    EXPECT_EQ(times.nanoseconds.empty() ? 0 : times.nanoseconds.front(), expected.nanoseconds)
        << expected.text;
  }
  for (const std::string& text : texts_that_are_no_times())
    EXPECT_THROW(times_of_texts({text}), Error) << text;
}

TEST(EventTimes, ReadYearsBeyondThoseOfNanoseconds) {
  const EventTimes times = times_of_texts({"9999-12-31T23:59:59.25Z", "1600-01-01", "0001-01-01 00:00:00"});
  EXPECT_THAT(times.seconds, ElementsAre(253'402'300'799, -11'676'096'000, -62'135'596'800));
  EXPECT_THAT(times.nanoseconds, ElementsAre(250'000'000, 0, 0));
  EXPECT_THAT(times_of_texts({"2024-05-01T12:30:00.1234567891Z"}).nanoseconds, ElementsAre(123'456'789));
}

TEST(EventTimes, ReadNumbersInTheUnit) {
  const EventTimes milli = times_of_numbers({1'000'900, 1'000'100, -1}, TimeUnit::kMilliseconds);
  EXPECT_THAT(milli.seconds, ElementsAre(1'000, 1'000, -1));
  EXPECT_THAT(milli.nanoseconds, ElementsAre(900'000'000, 100'000'000, 999'000'000));
  EXPECT_THAT(times_of_numbers({5'000}, TimeUnit::kMilliseconds).nanoseconds, IsEmpty());
  EXPECT_THAT(times_of_numbers({7}, TimeUnit::kSeconds).seconds, ElementsAre(7));
  EXPECT_THAT(times_of_numbers({1'000'000'001}, TimeUnit::kNanoseconds).nanoseconds, ElementsAre(1));
  const EventTimes texts = times_of_texts({"1700000000.5", "1700000001"});
  EXPECT_THAT(texts.seconds, ElementsAre(1'700'000'000, 1'700'000'001));
  EXPECT_THAT(texts.nanoseconds, ElementsAre(500'000'000, 0));
}

TEST(EventTimes, RefuseTextsThatAreNoTimes) {
  for (const char* text :
       {"yesterday", "", "2024-13-01", "2024-05-01T25:00:00", "05/01/2024", "1e300", " UTC", "UTC",
        "2024-05-01 CET", "2024-05-01T12:30:00.", "2024.5-01-01", "10000-01-01"}) {
    try {
      times_of_texts({"1970-01-01", text});
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("log.csv: column \"at\": row 1 (counted from 0): expected a time"));
    }
  }
}

TEST(EventTimes, CompareBeyondTheRangeOfNanoseconds) {
  constexpr std::int64_t kCenturies = std::int64_t{1} << 40;
  EXPECT_LT(in_nanoseconds(1, 999'999'999), in_nanoseconds(2, 0));
  EXPECT_LT(in_nanoseconds(-kCenturies, 0), in_nanoseconds(-1, 0));
  EXPECT_LT(in_nanoseconds(1, 0), in_nanoseconds(kCenturies, 0));
}

// A float of our days is a multiple of 128 seconds.
TEST(EventTimes, RefuseNumbersThatTheirTypeRounds) {
  RawColumn column;
  column.name = "at";
  column.kind = Kind::kReal;
  column.reals = {16'777'215};
  column.exact = 16'777'216;  // of floats
  EXPECT_THAT(times_of({}, column, TimeUnit::kSeconds).seconds, ElementsAre(16'777'215));
  column.reals = {1'700'000'000};
  try {
    times_of({}, column, TimeUnit::kSeconds);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a time below 2^24, from which this type rounds, found 1700000000"));
  }
  column.exact = RawColumn().exact;
  EXPECT_THAT(times_of({}, column, TimeUnit::kSeconds).seconds, ElementsAre(1'700'000'000));
}

}  // namespace
}  // namespace hstu
