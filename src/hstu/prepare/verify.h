// Checks prepared data, file by file.
#pragma once

#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/file_verdict.h"

namespace hstu {

// A dataset of hstu: every column against the manifest (type, length, checksum), the users' offsets, the
// order of time inside users, the counts, the stored indices of anchors. A cache in MLCommons' layout (the
// folder itself, or its parent): type and length of every file, the users' borders, and, for Yambda-5b, the
// published SHA-256 and MD5 of the cache, the items' popularity and the mappings beside it. UsageError when
// `folder` is neither.
std::vector<FileVerdict> verify(const Path& folder);

}  // namespace hstu
