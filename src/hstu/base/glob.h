// Files by patterns of a shell: *, ?, [...].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// The pattern that means the text itself.
std::string glob_escaped(std::string_view text);

// The files whose paths below `folder` match the pattern, in byte order.
std::vector<Path> glob_files(const Path& folder, const std::string& pattern);

}  // namespace hstu
