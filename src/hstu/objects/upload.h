// Files of any size become objects.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hstu/base/files.h"
#include "hstu/objects/object_store.h"

namespace hstu {

struct FileUpload {
  std::string key;
  Path file;  // whose bytes follow from the key, and do not change: what was begun earlier is continued
};

// Makes the objects, several requests at a time. A file of more than `part_bytes` is sent in parts of that
// size, or larger ones where a store would not take so many; its object appears when all are there. Parts
// that an interrupted call has sent are not sent again. An upload that the store does not complete is
// aborted; one that ends with a failure that may pass is kept for the next call. Throws Error.
void upload_files(const ObjectStore& store, const std::string& bucket, const std::vector<FileUpload>& files,
                  std::int64_t part_bytes);

// Removes what was sent for objects below url.prefix that were never completed, and whose key is ours.
// Nothing happens if the keys do not allow to list them.
void abort_uploads(const ObjectStore& store, const ObjectUrl& url,
                   const std::function<bool(const std::string& key)>& ours);

}  // namespace hstu
