// What verify finds in a folder, for tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "hstu/prepare/verify.h"

namespace hstu {

// The files that are not as they should be, in order.
inline std::vector<std::string> wrong(const Path& folder) {
  std::vector<std::string> files;
  for (const FileVerdict& verdict : verify(folder)) {
    if (verdict.status != FileVerdict::Status::kOk) files.push_back(verdict.file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace hstu
