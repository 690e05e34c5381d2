#include "hstu/base/foreign_text.h"

#include <string>

#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(ForeignText, ALineHasNoControlCharactersAndIsUtf8) {
  for (const char* text : {"", "plain", "two words", "ünï — 文字", "a/b"})
    EXPECT_TRUE(is_one_line(text)) << text;
  for (const char* text : {"a\nb", "a\rb", "a\tb", "\x1b[2J", "\x7f",
                           "\xc2\x9b"
                           "2J",
                           "\xff", "\xe6\x96"})
    EXPECT_FALSE(is_one_line(text)) << text;
  EXPECT_FALSE(is_one_line(std::string(1, '\0')));
}

TEST(ForeignText, AFileNameIsOnePartOfAPath) {
  for (const char* text : {"a", "a b", "...", ".a", "-rf"}) EXPECT_TRUE(is_file_name(text)) << text;
  for (const char* text : {"", ".", "..", "/", "a/b", "../a", "/a", "a/", "a\n"})
    EXPECT_FALSE(is_file_name(text)) << text;
}

TEST(ForeignText, APathBelowAFolderHasFileNamesAlone) {
  for (const char* text : {"a", "a/b", "a/.b/c d"}) EXPECT_TRUE(is_path_below(text)) << text;
  for (const char* text : {"", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", "a/b\n"})
    EXPECT_FALSE(is_path_below(text)) << text;
}

TEST(ForeignText, ALoginIsNoOptionOfSsh) {
  for (const char* text : {"host", "me@host.example", "me@10.0.0.1", "fe80::1%eth0", "a-b"})
    EXPECT_TRUE(is_login(text)) << text;
  for (const char* text : {"", "-oProxyCommand=x", "-", "a b", "a\nb", "$(x)", "a;b"})
    EXPECT_FALSE(is_login(text)) << text;
}

}  // namespace
}  // namespace hstu
