#include "hstu/objects/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"
#include "temporary_folder.h"

namespace hstu {
namespace {

TEST(Credentials, AreThoseOfTheProfile) {
  const Path file = temporary_folder() / "credentials";
  write_file(file,
             "; a comment\r\n[default]\r\naws_access_key_id = A\r\naws_secret_access_key = b=/+\r\n"
             "[ two ]\naws_access_key_id=C\naws_secret_access_key=d\naws_session_token = e==\nregion = x\n"
             "[half]\naws_access_key_id=C\n[]\n[\n=\n");
  const Credentials first = read_credentials(file, "default"), second = read_credentials(file, "two");
  EXPECT_EQ(first.key_id, "A");
  EXPECT_EQ(first.secret, "b=/+");
  EXPECT_EQ(first.token, "");
  EXPECT_EQ(second.key_id, "C");
  EXPECT_EQ(second.token, "e==");
  EXPECT_THROW(read_credentials(file, "half"), UsageError);
  EXPECT_THROW(read_credentials(file, "none"), UsageError);
  EXPECT_THROW(read_credentials(file.parent_path(), "default"), Error);
}

}  // namespace
}  // namespace hstu
