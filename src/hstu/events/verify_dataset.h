// The part of verify() (prepare/verify.h) for datasets of hstu.
#pragma once

#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/file_verdict.h"

namespace hstu {

std::vector<FileVerdict> verify_dataset(const Path& folder);

}  // namespace hstu
