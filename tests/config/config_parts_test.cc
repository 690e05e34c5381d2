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

struct Options {
  std::optional<Split> split;
  StringLists allowed;
  std::vector<std::string> words;
};

void refuse_blanks(const std::string& text) {
  if (text.find(' ') != std::string::npos) fail_usage("\"{}\" holds a blank", text);
}

void describe(ConfigFields& fields, Options& o) {
  fields.field("allowed", o.allowed, "texts by column");
  fields.field("words", o.words, "words", rule::parsed_by(refuse_blanks));
  fields.optional_section("split", o.split, "the split");
}

Options parse(std::string_view text) {
  return parse_config<Options>(text, "a.toml");
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ConfigParts, AnOptionalSectionIsEmptyUnlessTheFileHasIt) {
  EXPECT_FALSE(parse("").split.has_value());
  EXPECT_EQ(parse("[split]").split.value().days, 3);
  EXPECT_EQ(parse("[split]\ndays = 2").split.value().days, 2);
  EXPECT_EQ(error_of("[split]\ndays = 0"), "split.days: expected a number >= 1, found 0 (a.toml line 2)");
  EXPECT_EQ(error_of("split = 1"), "split: expected a section, found the integer 1 (a.toml line 1)");
  EXPECT_THAT(error_of("[splitt]"), HasSubstr("did you mean \"split\""));
}

TEST(ConfigParts, ATableOfListsHasAnyKeys) {
  const Options o = parse("[allowed]\nkind = [\"view\", \"buy\"]\n\"a b\" = []");
  EXPECT_THAT(o.allowed.at("kind"), ElementsAre("view", "buy"));
  EXPECT_TRUE(o.allowed.at("a b").empty());
  EXPECT_EQ(error_of("[allowed]\nkind = \"view\""),
            "allowed: kind: expected a list, found the string \"view\" (a.toml line 1)");
  EXPECT_THAT(error_of("allowed = 1"), HasSubstr("allowed: expected a section of lists of strings"));
}

TEST(ConfigParts, AStringThatDoesNotParseIsRefusedWithItsPlace) {
  EXPECT_THAT(parse("words = [\"a\"]").words, ElementsAre("a"));
  EXPECT_EQ(error_of("\nwords = [\"a\", \"b c\"]"), "words: \"b c\" holds a blank (a.toml line 2)");
}

TEST(ConfigParts, TheDumpReadsBackToTheSameValues) {
  const std::string text =
      to_toml(parse("allowed = {kind = [\"a ${HOME:-}$${x}\"], \"b.c\" = []}\n[split]\ndays = 9"));
  EXPECT_EQ(to_toml(parse(text)), text);
  EXPECT_EQ(parse(text).split.value().days, 9);
  EXPECT_EQ(parse(text).allowed.size(), 2u);
  EXPECT_EQ(to_toml(Options{}), "allowed = {}\nwords = []\n");
}

TEST(ConfigParts, TheReferenceShowsAnOptionalSection) {
  EXPECT_THAT(config_reference<Options>(),
              AllOf(HasSubstr("## [split]"), HasSubstr("| `days` | integer, >= 1 | `3` |"),
                    HasSubstr("| `allowed` | lists of strings | `{}` |")));
}

}  // namespace
}  // namespace hstu
