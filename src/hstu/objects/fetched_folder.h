// The objects of a folder of a store as local files.
#pragma once

#include <string>

#include "hstu/base/files.h"
#include "hstu/objects/object_store.h"

namespace hstu {

// Downloads all objects below s3://BUCKET/FOLDER and returns a folder with a link to each at its path; it is
// a part of `cache`. What is complete in `cache`, or begun, is not asked for again, unless the object
// changed; what the store does not list any more is not in the folder. UsageError if the store lists nothing
// there, or another process uses `cache`.
Path fetch_folder(const std::string& url, const StoreOptions& options, const Path& cache);

}  // namespace hstu
