#include "hstu/objects/listing.h"

#include <utility>

#include <fmt/format.h>

#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/objects/xml.h"

namespace hstu {

ListingPage parse_listing(std::string_view xml) {
  check(xml.find("<ListBucketResult") != xml.npos && xml.find("</ListBucketResult>") != xml.npos,
        "the answer of the object store is no list of objects: is the endpoint that of an S3 store?");
  ListingPage page;
  std::string_view rest = xml;
  while (const auto entry = take_element(rest, "Contents")) {
    StoredObject object{element_text(*entry, "Key"), element_text(*entry, "ETag"), 0};
    const std::string size = element_text(*entry, "Size");
    const auto bytes = parse_number<std::int64_t>(size);
    check(!object.key.empty(), "the answer of the object store lists an object without a key");
    check(bytes && *bytes >= 0, "object \"{}\": the store says the size \"{}\"", object.key, size);
    object.size = *bytes;
    page.objects.push_back(std::move(object));
  }
  if (element_text(xml, "IsTruncated") == "true") {
    page.next = element_text(xml, "NextContinuationToken");
    check(!page.next.empty(),
          "the answer of the object store is not the last one and does not name the next");
  }
  return page;
}

StoreError parse_store_error(std::string_view xml) {
  try {
    const auto error = take_element(xml, "Error");
    if (error) return {element_text(*error, "Code"), element_text(*error, "Message")};
  } catch (const Error&) {  // the status says enough
  }
  return {};
}

}  // namespace hstu
