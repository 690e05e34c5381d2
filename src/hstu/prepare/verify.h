// Checks prepared data, file by file.
#pragma once

#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/file_verdict.h"

namespace hstu {

// For a dataset of hstu: compares every column with the manifest (type, length, checksum), and checks the
// users' offsets, the order of time inside users, the counts and the stored indices of anchors. For a cache
// in MLCommons' layout (the folder itself, or its parent): type and length of every file, the users' bounds,
// and, for Yambda-5b, the published SHA-256 and MD5 of the cache, of the items' popularity and of the
// mappings. UsageError if `folder` is neither.
std::vector<FileVerdict> verify(const Path& folder);

}  // namespace hstu
