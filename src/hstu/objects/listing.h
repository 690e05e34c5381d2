// The XML of object stores: lists of objects, and errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace hstu {

struct StoredObject {
  std::string key;
  std::string etag;  // changes with the content; "" if the store names none
  std::int64_t size = 0;
};

// The pages of a list so far: a store that names them for ever is an error.
class PagesSeen {
 public:
  // `next`: what names the next page; `entries`: of the list so far; `list`: its name for messages.
  void add(const std::string& next, std::size_t entries, const std::string& list);

 private:
  std::set<std::string> seen_;  // by checksum: a name may be long
};

// One answer to ListObjectsV2.
struct ListingPage {
  std::vector<StoredObject> objects;
  std::string next;  // continuation token; "": the last page
};

// Error if it is no such answer. Elements that are not needed are skipped.
ListingPage parse_listing(std::string_view xml);

struct StoreError {
  std::string code, message;  // "": it is none
};

// Of an answer that may be an error.
StoreError parse_store_error(std::string_view xml);

}  // namespace hstu
