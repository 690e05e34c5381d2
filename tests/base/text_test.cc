#include "hstu/base/text.h"

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Text, PrintsCharactersOfEveryLengthAsTheyAre) {
  for (const char* text :
       {"", "a b\n\tc", "\xC3\xBC\xC2\xA0", "\xE6\x97\xA5\xEF\xBF\xBD", "\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(printable(text), text);
}

TEST(Text, PrintsControlCharactersAndBytesThatAreNoUtf8AsNumbers) {
  EXPECT_EQ(printable("a\x1B[31m\x7F\r"), "a\\x1b[31m\\x7f\\x0d");
  EXPECT_EQ(printable("\xC2\x9B[m"), "\\xc2\\x9b[m");  // one of two bytes
  EXPECT_EQ(printable("\xFF\xFEz"), "\\xff\\xfez");
  EXPECT_EQ(printable("\xE6\x97"), "\\xe6\\x97");  // cut off
  EXPECT_EQ(printable("\xE6\x97z"), "\\xe6\\x97z");
  EXPECT_EQ(printable("\xC0\xAF"), "\\xc0\\xaf");  // overlong
  EXPECT_EQ(printable("\xE0\x80\xAF"), "\\xe0\\x80\\xaf");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace hstu
