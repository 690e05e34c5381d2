#include "hstu/base/stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hstu {
namespace {

TEST(Stack, NamesTheLibrariesAndFunctionsThatCalled) {
  const std::string stack = stack_of_this_thread();
  // libc exports the function that calls main, or the program says where in it the call is.
  EXPECT_THAT(stack, ::testing::HasSubstr("__libc_start_main"));
  EXPECT_THAT(stack, ::testing::HasSubstr("test_base + 0x"));
}

}  // namespace
}  // namespace hstu
