#include "hstu/objects/upload_answers.h"

#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

std::string uploads(const std::string& content) {
  return "<ListMultipartUploadsResult xmlns=\"x\">" + content + "</ListMultipartUploadsResult>";
}
std::string parts(const std::string& content) {
  return "<ListPartsResult>" + content + "</ListPartsResult>";
}
std::string part(const std::string& number, const std::string& size) {
  return "<Part><PartNumber>" + number + "</PartNumber><ETag>&quot;e&quot;</ETag><Size>" + size +
         "</Size></Part>";
}

TEST(UploadAnswers, NameUploadsAndTheNextPage) {
  const UploadsPage page = parse_uploads(
      uploads("<IsTruncated>true</IsTruncated><NextKeyMarker>k&amp;</NextKeyMarker><NextUploadIdMarker>i+/"
              "</NextUploadIdMarker><Upload><Key>k&amp;</Key><UploadId>i+/</UploadId></Upload>"));
  ASSERT_EQ(page.uploads.size(), 1U);
  EXPECT_EQ(page.uploads[0].key, "k&");
  EXPECT_EQ(page.uploads[0].id, "i+/");
  EXPECT_EQ(page.next_key, "k&");
  EXPECT_EQ(page.next_id, "i+/");
  EXPECT_TRUE(parse_uploads(uploads("<NextKeyMarker>of no next page</NextKeyMarker>")).next_key.empty());
}

TEST(UploadAnswers, HavePartsByNumber) {
  const PartsPage page =
      parse_parts(parts("<IsTruncated>true</IsTruncated><NextPartNumberMarker>7</NextPartNumberMarker>" +
                        part("7", "3") + part("2", "5")));
  ASSERT_EQ(page.parts.size(), 2U);
  EXPECT_EQ(page.parts.at(2).size, 5);
  EXPECT_EQ(page.parts.at(7).etag, "\"e\"");
  EXPECT_EQ(page.next, 7);
  EXPECT_EQ(completion_of(page.parts),
            "<CompleteMultipartUpload><Part><PartNumber>2</PartNumber><ETag>&quot;e&quot;</ETag></Part>"
            "<Part><PartNumber>7</PartNumber><ETag>&quot;e&quot;</ETag></Part></CompleteMultipartUpload>");
}

TEST(UploadAnswers, MayBeCalledResponses) {  // as moto does
  EXPECT_EQ(
      parse_parts("<ListPartsResponse xmlns=\"x\">" + part("2", "5") + "</ListPartsResponse>").parts.size(),
      1U);
}

TEST(UploadAnswers, AnythingElseIsAnError) {
  for (const std::string& xml :
       {std::string(), std::string("<html></html>"), std::string("<ListMultipartUploadsResult>"),
        uploads("<Upload><Key>k</Key></Upload>"), uploads("<Upload><UploadId>i</UploadId></Upload>"),
        uploads("<IsTruncated>true</IsTruncated>")})
    EXPECT_THROW(parse_uploads(xml), Error) << xml;
  for (const std::string& xml :
       {std::string(), uploads(""), parts(part("0", "1")), parts(part("1", "-1")), parts(part("", "1")),
        parts(part("1", "9223372036854775808")), parts("<IsTruncated>true</IsTruncated>")})
    EXPECT_THROW(parse_parts(xml), Error) << xml;
  EXPECT_THROW(parse_upload_id("<InitiateMultipartUploadResult/>"), Error);
}

}  // namespace
}  // namespace hstu
