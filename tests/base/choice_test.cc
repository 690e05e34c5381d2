#include "hstu/base/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

using testing::ElementsAre;

enum class Pace { flat, linear, unnamed };
constexpr Choice<Pace> kPaces[] = {{"flat", Pace::flat}, {"linear", Pace::linear}};

TEST(Choice, PairsEveryValueWithItsWord) {
  EXPECT_THAT(words_of(kPaces), ElementsAre("flat", "linear"));
  for (const Choice<Pace>& choice : kPaces) {
    EXPECT_EQ(parse_word(kPaces, choice.word, "pace"), choice.value);
    EXPECT_EQ(word_of(kPaces, choice.value), choice.word);
  }
}

TEST(Choice, AnUnknownWordIsTheUsersMistakeAndNamesTheNearestOne) {
  try {
    parse_word(kPaces, "liner", "pace");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "unknown pace \"liner\"; did you mean \"linear\"?");
  }
}

TEST(Choice, AValueWithoutAWordIsADefect) {
  EXPECT_THROW(word_of(kPaces, Pace::unnamed), InternalError);
}

}  // namespace
}  // namespace hstu
