#include "hstu/objects/listing.h"

#include <utility>

#include <fmt/format.h>

#include "hstu/base/checksum.h"
#include "hstu/base/error.h"
#include "hstu/base/text.h"
#include "hstu/objects/xml.h"

namespace hstu {

void PagesSeen::add(const std::string& next, std::size_t entries, const std::string& list) {
  constexpr std::size_t kMostEntries = 10'000'000, kMostPages = 1'000'000;
  check(
      seen_.insert(checksum(std::string_view(next))).second && entries <= kMostEntries &&
          seen_.size() <= kMostPages,
      "{}: the store's list does not end: it names a page twice, or has too many ({} pages, {} entries): is "
      "the endpoint that of an S3 store?",
      list, with_separators(std::ssize(seen_)), with_separators(static_cast<std::int64_t>(entries)));
}

ListingPage parse_listing(std::string_view xml) {
  check(xml.find("<ListBucketResult") != xml.npos && xml.find("</ListBucketResult>") != xml.npos,
        "the answer of the object store is no list of objects: is the endpoint that of an S3 store?");
  ListingPage page;
  std::string_view rest = xml;
  while (const auto entry = take_element(rest, "Contents")) {
    StoredObject object{element_line(*entry, "Key"), element_line(*entry, "ETag"), 0};
    const std::string size = element_line(*entry, "Size");
    const auto bytes = parse_number<std::int64_t>(size);
    check(!object.key.empty(), "the answer of the object store lists an object without a key");
    check(bytes && *bytes >= 0, "object \"{}\": the store says the size \"{}\"", object.key, size);
    object.size = *bytes;
    page.objects.push_back(std::move(object));
  }
  if (element_text(xml, "IsTruncated") == "true") {
    page.next = element_line(xml, "NextContinuationToken");
    check(!page.next.empty(),
          "the answer of the object store is not the last one and does not name the next");
  }
  return page;
}

StoreError parse_store_error(std::string_view xml) {
  try {
    const auto error = take_element(xml, "Error");
    if (error) return {element_line(*error, "Code"), element_text(*error, "Message")};
  } catch (const Error&) {  // the status says enough
  }
  return {};
}

}  // namespace hstu
