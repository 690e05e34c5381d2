// The version of hstu.
#pragma once

#include <string>

namespace hstu {

// "0.1.0 (commit 1a2b3c4d)"; a "+" after the commit marks uncommitted changes.
std::string version();

}  // namespace hstu
