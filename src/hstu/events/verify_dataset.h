// The parts of verify(): see there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hstu/events/verify.h"

namespace hstu {

// kOk with the remark `compared`, or kDiffers with the message of the Error that `check_it` threw.
FileVerdict verdict_of(const std::string& file, const std::string& compared,
                       const std::function<void()>& check_it);

std::vector<FileVerdict> verify_dataset(const Path& folder);

}  // namespace hstu
