// Whether prepared data are what they say they are, file by file.
#pragma once

#include <string>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

struct FileVerdict {
  enum class Status { kOk, kDiffers, kMissing };
  std::string file;
  Status status = Status::kOk;
  std::string remark;  // what was compared, or what differs
};

// A dataset of ours: every column against the manifest (type, length, checksum), the users' offsets, the
// order of time inside users, the counts, the stored indices of anchors. A cache in MLCommons' layout (the
// folder itself, or the one around it): type and length of every file, the users' borders, and, for
// Yambda-5b, the published SHA-256 and MD5 of the cache, the items' popularity and the mappings, where these
// lie beside it. UsageError when `folder` is neither.
std::vector<FileVerdict> verify(const Path& folder);

}  // namespace hstu
