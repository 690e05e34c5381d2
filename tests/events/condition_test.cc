#include "hstu/events/condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

using Mask = std::vector<std::uint8_t>;

RawColumn integers(std::vector<std::int64_t> values) {
  RawColumn column;
  column.name = "n";
  column.type_name = "int64";
  column.integers = std::move(values);
  return column;
}

RawColumn colours() {
  RawColumn column;
  column.name = "colour";
  column.type_name = "string";
  column.kind = RawColumn::Kind::kText;
  column.texts = {"red", "dark blue"};
  column.integers = {0, 1, 0, -1};  // the last row is null
  return column;
}

Mask matching(const char* condition, const RawColumn& column) {
  Mask mask(column.kind == RawColumn::Kind::kReal ? column.reals.size() : column.integers.size(), 1);
  keep_matching(parse_condition(condition), column, "log.parquet", mask);
  return mask;
}

TEST(Condition, ParsesEveryOperator) {
  for (const char* text : {"a = 1", "a != 1", "a < 1", "a <= 1", "a > 1", "a >= 1"}) {
    EXPECT_EQ(to_string(parse_condition(text)), text);
  }
  const Condition tight = parse_condition("event_type='add to cart'");
  EXPECT_EQ(tight.column, "event_type");
  EXPECT_EQ(tight.value, "add to cart");
}

TEST(Condition, RefusesToCompareDoublesWithAnIntegerThatTheyRound) {
  RawColumn doubles = integers({});
  doubles.kind = RawColumn::Kind::kReal;
  doubles.reals = {9007199254740992.0};
  EXPECT_EQ(matching("n = 9007199254740992", doubles), Mask{1});
  EXPECT_EQ(matching("n < 9223372036854775807", doubles), Mask{1});
  EXPECT_THROW(matching("n = 9007199254740993", doubles), UsageError);
  EXPECT_THROW(matching("n != 9007199254740993", doubles), UsageError);
  EXPECT_EQ(matching("n = 9007199254740993", integers({9'007'199'254'740'992, 9'007'199'254'740'993})),
            (Mask{0, 1}));
}

TEST(Condition, RefusesWhatIsNoCondition) {
  for (const char* text : {"", "a", "a =", "= 1", "a ! 1"})
    EXPECT_THROW(parse_condition(text), UsageError) << text;
}

std::string refusal(const std::string& text) {
  try {
    parse_condition(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Condition, PointsAtThePlaceThatItCannotRead) {
  const auto points = [](const char* reason, const char* text, const char* caret) {
    return AllOf(HasSubstr(reason), EndsWith(fmt::format("\n    {}\n    {}", text, caret)));
  };
  EXPECT_THAT(refusal("kind == view"), points("write = instead of ==", "kind == view", "     ^"));
  EXPECT_THAT(refusal("kind => 5"), points("write >= instead of =>", "kind => 5", "     ^"));
  EXPECT_THAT(refusal("kind <> x"), points("write != instead of <>", "kind <> x", "     ^"));
  EXPECT_THAT(refusal("kind ! x"), points("expected one of", "kind ! x", "     ^"));
  EXPECT_THAT(refusal("kind = 'view"), points("not closed", "kind = 'view", "       ^"));
  EXPECT_THAT(refusal("kind = view'"), points("was not opened", "kind = view'", "           ^"));
  EXPECT_THAT(refusal("kind = 'it's'"), points("closed quote", "kind = 'it's'", "           ^"));
  EXPECT_THAT(refusal("'kind = view"), points("not closed", "'kind = view", "^"));
  EXPECT_THAT(refusal("kind ="), points("a value is missing", "kind =", "      ^"));
  EXPECT_THAT(refusal("= view"), points("a column is missing", "= view", "^"));
  EXPECT_THAT(refusal("'' = view"), points("the name of a column is empty", "'' = view", "^"));
  EXPECT_THAT(refusal("  '' = view"), points("the name of a column is empty", "  '' = view", "  ^"));
  EXPECT_THAT(refusal("kind"), points("an operator is missing", "kind", "    ^"));
  EXPECT_THAT(refusal("a >= 1 and b <= 2"),
              points("further conditions", "a >= 1 and b <= 2", "             ^"));
  EXPECT_THAT(refusal("größe == 5"), points("instead of ==", "größe == 5", "      ^"));
}

TEST(Condition, IsWrittenAsItIsRead) {
  for (const char* text : {"kind = view", "a >= 4.5", "kind = ' add to cart '", "kind != 'a=b'",
                           "'a < b' = 1", "q = '\"'", "q = \"'\"", "name = O'Brien", "kind = ''"}) {
    EXPECT_EQ(to_string(parse_condition(text)), text);
  }
  EXPECT_EQ(to_string(parse_condition("  kind=\"view\" ")), "kind = view");
}

TEST(Condition, ComparesIntegers) {
  const RawColumn column = integers({49, 50, 51});
  EXPECT_EQ(matching("n = 50", column), (Mask{0, 1, 0}));
  EXPECT_EQ(matching("n != 50", column), (Mask{1, 0, 1}));
  EXPECT_EQ(matching("n < 50", column), (Mask{1, 0, 0}));
  EXPECT_EQ(matching("n <= 50", column), (Mask{1, 1, 0}));
  EXPECT_EQ(matching("n > 50", column), (Mask{0, 0, 1}));
  EXPECT_EQ(matching("n >= 50", column), (Mask{0, 1, 1}));
  EXPECT_EQ(matching("n >= 49.5", column), (Mask{0, 1, 1}));
}

TEST(Condition, TellsIntegersBeyondDoublePrecisionApart) {
  const RawColumn column = integers({9007199254740992, 9007199254740993});
  EXPECT_EQ(matching("n = 9007199254740993", column), (Mask{0, 1}));
}

TEST(Condition, ComparesRealNumbers) {
  RawColumn column = integers({});
  column.kind = RawColumn::Kind::kReal;
  column.reals = {3.5, 4.0, 4.5};
  EXPECT_EQ(matching("n >= 4", column), (Mask{0, 1, 1}));
  EXPECT_EQ(matching("n < 3.6", column), (Mask{1, 0, 0}));
}

TEST(Condition, ComparesTextsAndANullEqualsNothing) {
  EXPECT_EQ(matching("colour = red", colours()), (Mask{1, 0, 1, 0}));
  EXPECT_EQ(matching("colour != red", colours()), (Mask{0, 1, 0, 1}));
  EXPECT_EQ(matching("colour = \"dark blue\"", colours()), (Mask{0, 1, 0, 0}));
}

TEST(Condition, NarrowsTheMaskItIsGiven) {
  Mask mask = {0, 1, 1};
  keep_matching(parse_condition("n >= 50"), integers({50, 50, 1}), "log.parquet", mask);
  EXPECT_EQ(mask, (Mask{0, 1, 0}));
}

TEST(Condition, SaysWhenItDoesNotFitTheColumn) {
  EXPECT_THROW(matching("colour < red", colours()), UsageError);
  try {
    matching("n = listen", integers({1}));
    FAIL() << "a text was compared with integers";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("log.parquet"), testing::HasSubstr("\"n\""),
                                             testing::HasSubstr("int64")));
  }
}

}  // namespace
}  // namespace hstu
