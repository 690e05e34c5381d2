// The part of verify() for MLCommons' layout: see there.
#pragma once

#include <vector>

#include "hstu/events/verify.h"

namespace hstu {

// `cache` holds store_meta.json.
std::vector<FileVerdict> verify_mlcommons(const Path& cache);

}  // namespace hstu
