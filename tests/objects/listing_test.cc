#include "hstu/objects/listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hstu/base/error.h"

namespace hstu {
namespace {

std::string listing(const std::string& content) {
  return "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"x\">" + content + "</ListBucketResult>\n";
}
std::string entry(const std::string& key, const std::string& size) {
  return "<Contents><Key>" + key + "</Key><Owner><ID>7</ID></Owner><Size>" + size + "</Size></Contents>";
}

TEST(Listing, HasKeysSizesAndTheNextPage) {
  const ListingPage page = parse_listing(
      listing("<IsTruncated>true</IsTruncated><Contents><ETag>&quot;ab&quot;</ETag>\n<Size>12</Size>"
              "<Key>a &amp;amp; &lt;b&gt; &#233;&#x20AC;&#x1F600;</Key></Contents>" +
              entry("c", "9223372036854775807") + "<NextContinuationToken>t/+=</NextContinuationToken>"));
  ASSERT_EQ(page.objects.size(), 2U);
  EXPECT_EQ(page.objects[0].key, "a &amp; <b> \xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(page.objects[0].etag, "\"ab\"");
  EXPECT_EQ(page.objects[0].size, 12);
  EXPECT_EQ(page.objects[1].size, 9223372036854775807);
  EXPECT_EQ(page.next, "t/+=");
}

TEST(Listing, MayBeEmpty) {
  EXPECT_TRUE(parse_listing(listing("<IsTruncated>false</IsTruncated>")).objects.empty());
  EXPECT_EQ(parse_listing(listing("")).next, "");
}

TEST(Listing, AnythingElseIsAnError) {
  for (const std::string& xml :
       {std::string(), std::string("<html></html>"), std::string("<ListBucketResult>"), listing("<Contents>"),
        listing("<Contents><Key>a</Contents>"), listing("<Contents><Size>1</Size></Contents>"),
        listing(entry("a", "")), listing(entry("a", "-1")), listing(entry("a", "9223372036854775808")),
        listing(entry("a", "1x")), listing(entry("&", "1")), listing(entry("&nbsp;", "1")),
        listing(entry("&#;", "1")), listing(entry("&#0;", "1")), listing(entry("&#x110000;", "1")),
        listing(entry("&#-1;", "1")), listing(entry("&#99999999999;", "1")),
        listing("<IsTruncated>true</IsTruncated>")})
    EXPECT_THROW(parse_listing(xml), Error) << xml;
}

TEST(Listing, ControlCharactersInTextsOfRequestsAreErrors) {
  EXPECT_THROW(parse_listing(listing(entry("a&#10;b", "1"))), Error);
  EXPECT_THROW(parse_listing(listing(entry("a\x1b[2J", "1"))), Error);
  EXPECT_THROW(
      parse_listing(listing("<Contents><Key>a</Key><ETag>e&#13;&#10;X: 1</ETag><Size>1</Size></Contents>")),
      Error);
  EXPECT_THROW(parse_listing(listing("<IsTruncated>true</IsTruncated><NextContinuationToken>&#9;"
                                     "</NextContinuationToken>")),
               Error);
}

TEST(Listing, APageThatWasNamedBeforeIsAnError) {
  PagesSeen seen;
  for (const char* next : {"a", "b", "c"}) seen.add(next, 1000, "s3://b/f/");
  EXPECT_THROW(seen.add("a", 1000, "s3://b/f/"), Error);
  EXPECT_THROW(PagesSeen().add("a", 10'000'001, "s3://b/f/"), Error);
}

TEST(Listing, ErrorsOfAStoreHaveACode) {
  const StoreError error =
      parse_store_error("<Error><Code>NoSuchKey</Code><Message>It &lt;is&gt;</Message></Error>");
  EXPECT_EQ(error.code, "NoSuchKey");
  EXPECT_EQ(error.message, "It <is>");
  EXPECT_EQ(parse_store_error("<html>502</html>").code, "");
  EXPECT_EQ(parse_store_error("<Error><Code>a").code, "");
}

}  // namespace
}  // namespace hstu
