// Which hstu this is.
#pragma once

#include <string>

namespace hstu {

// "0.1.0 (commit 1a2b3c4d)"; "+" behind the commit marks a tree with changes that were not committed.
std::string version();

}  // namespace hstu
