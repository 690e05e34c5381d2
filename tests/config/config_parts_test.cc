// Sections that may be missing, tables with the user's own keys, and strings with a syntax of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "hstu/config/config.h"

namespace hstu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct Split {
  std::int64_t days = 3;
};

void describe(ConfigFields& fields, Split& o) {
  fields.field("days", o.days, "days held out", rule::at_least(1));
}

struct Parts {
  std::optional<Split> split;
  StringLists allowed;
  std::vector<std::string> words;
};

void refuse_blanks(const std::string& text) {
  if (text.find(' ') != std::string::npos) fail_usage("\"{}\" holds a blank", text);
}

void describe(ConfigFields& fields, Parts& o) {
  fields.field("allowed", o.allowed, "texts by column");
  fields.field("words", o.words, "words", rule::parsed_by(refuse_blanks));
  fields.optional_section("split", o.split, "the split");
}

Parts parse_parts(std::string_view text) {
  return parse_config<Parts>(text, "a.toml");
}

std::string parts_error(std::string_view text) {
  try {
    parse_parts(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ConfigParts, AnOptionalSectionIsEmptyUnlessTheFileHasIt) {
  EXPECT_FALSE(parse_parts("").split.has_value());
  EXPECT_EQ(parse_parts("[split]").split.value().days, 3);
  EXPECT_EQ(parse_parts("[split]\ndays = 2").split.value().days, 2);
  EXPECT_EQ(parts_error("[split]\ndays = 0"), "split.days: expected a number >= 1, found 0 (a.toml line 2)");
  EXPECT_EQ(parts_error("split = 1"), "split: expected a section, found the integer 1 (a.toml line 1)");
  EXPECT_THAT(parts_error("[splitt]"), HasSubstr("did you mean \"split\""));
}

TEST(ConfigParts, ATableOfListsHasAnyKeys) {
  const Parts o = parse_parts("[allowed]\nkind = [\"view\", \"buy\"]\n\"a b\" = []");
  EXPECT_THAT(o.allowed.at("kind"), ElementsAre("view", "buy"));
  EXPECT_TRUE(o.allowed.at("a b").empty());
  EXPECT_EQ(parts_error("[allowed]\nkind = \"view\""),
            "allowed: kind: expected a list, found the string \"view\" (a.toml line 1)");
  EXPECT_THAT(parts_error("allowed = 1"), HasSubstr("allowed: expected a section of lists of strings"));
}

TEST(ConfigParts, AStringThatDoesNotParseIsRefusedWithItsPlace) {
  EXPECT_THAT(parse_parts("words = [\"a\"]").words, ElementsAre("a"));
  EXPECT_EQ(parts_error("\nwords = [\"a\", \"b c\"]"), "words: \"b c\" holds a blank (a.toml line 2)");
}

TEST(ConfigParts, TheDumpReadsBackToTheSameValues) {
  const std::string text =
      to_toml(parse_parts("allowed = {kind = [\"a ${HOME:-}$${x}\"], \"b.c\" = []}\n[split]\ndays = 9"));
  EXPECT_EQ(to_toml(parse_parts(text)), text);
  EXPECT_EQ(parse_parts(text).split.value().days, 9);
  EXPECT_EQ(parse_parts(text).allowed.size(), 2u);
  EXPECT_EQ(to_toml(Parts{}), "allowed = {}\nwords = []\n");
}

TEST(ConfigParts, TheReferenceShowsAnOptionalSection) {
  EXPECT_THAT(config_reference<Parts>(),
              AllOf(HasSubstr("## [split]"), HasSubstr("| `days` | integer, >= 1 | `3` |"),
                    HasSubstr("| `allowed` | lists of strings | `{}` |")));
}

}  // namespace
}  // namespace hstu
