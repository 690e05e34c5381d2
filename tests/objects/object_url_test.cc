#include "hstu/objects/object_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

TEST(ObjectUrl, HasABucketAndAFolder) {
  EXPECT_EQ(parse_object_url("s3://logs").bucket, "logs");
  EXPECT_EQ(parse_object_url("s3://logs").prefix, "");
  EXPECT_EQ(parse_object_url("s3://logs/").prefix, "");
  EXPECT_EQ(parse_object_url("s3://logs/a b/c").prefix, "a b/c/");
  EXPECT_EQ(parse_object_url("s3://logs/a/").prefix, "a/");
}

TEST(ObjectUrl, AnythingElseIsRefused) {
  for (const char* const text : {"", "s3://", "s3:///a", "http://logs/a", "s3:/logs", "s3://lo gs/a",
                                 "s3://../a", "s3://user@host/a", "s3://a:80/b", "S3://logs"})
    EXPECT_THROW(parse_object_url(text), UsageError) << text;
}

TEST(ObjectUrl, KeysThatWouldLeaveTheFolderAreErrors) {
  EXPECT_EQ(relative_path("a/b c/d.csv", "a/"), "b c/d.csv");
  EXPECT_EQ(relative_path("..a/b..", ""), "..a/b..");
  for (const std::string& key :
       {std::string("a/../b"), std::string("a//b"), std::string("/b"), std::string(".."), std::string("a/."),
        std::string("a/b/"), std::string(), std::string("a\0b", 3)})
    EXPECT_THROW(relative_path(key, ""), Error) << key;
  EXPECT_THROW(relative_path("b/c", "a/"), Error);
}

TEST(ObjectUrl, IsEncodedByItsBytes) {
  EXPECT_EQ(percent_encoded("a/b c+\xC3\xA9~_-.", true), "a/b%20c%2B%C3%A9~_-.");
  EXPECT_EQ(percent_encoded("a/b=&", false), "a%2Fb%3D%26");
}

}  // namespace
}  // namespace hstu
