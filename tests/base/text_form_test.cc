#include "hstu/base/text_form.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

template <typename TextOf>
std::string found(int count, const TextOf& text_of) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(text_of(i));
  return unlike_categories(std::vector<std::string_view>(texts.begin(), texts.end()));
}

TEST(TextForm, FindsNumbersWithFractions) {
  EXPECT_EQ(found(40, [](int i) { return fmt::format("{}.{}", i, i % 10); }), "numbers with fractions");
  EXPECT_EQ(found(40, [](int i) { return fmt::format("{},99", i); }), "numbers with fractions");
  EXPECT_EQ(found(40, [](int i) { return i < 3 ? fmt::format("n/a {}", i) : fmt::format("{}.5", i); }),
            "numbers with fractions");
}

TEST(TextForm, FindsListsOfFewParts) {
  EXPECT_EQ(found(30, [](int i) { return fmt::format("c{}|k{}", i / 5, i % 5); }), "lists with |");
  EXPECT_EQ(found(30, [](int i) { return fmt::format("['c{}', 'k{}']", i / 5, i % 5); }), "lists with ,");
  EXPECT_EQ(found(30, [](int i) { return fmt::format("{}; {}", i / 5, i % 5); }), "lists with ;");
}

TEST(TextForm, TakesOtherTextsForCategories) {
  EXPECT_EQ(found(40, [](int i) { return std::to_string(i); }), "");       // ids
  EXPECT_EQ(found(40, [](int i) { return fmt::format("{}.0", i); }), "");  // the same, as pandas has them
  EXPECT_EQ(found(10, [](int i) { return fmt::format("{}", 0.5 * i + 0.5); }), "");  // a scale
  EXPECT_EQ(found(40, [](int i) { return fmt::format("Title {}, The", i); }), "");
  EXPECT_EQ(found(40, [](int i) { return fmt::format("version {}.5", i); }), "");
  EXPECT_EQ(found(0, [](int) { return ""; }), "");
}

}  // namespace
}  // namespace hstu
