// The part of verify() (prepare/verify.h) for MLCommons' layout.
#pragma once

#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/file_verdict.h"

namespace hstu {

// `cache` must contain store_meta.json.
std::vector<FileVerdict> verify_mlcommons(const Path& cache);

}  // namespace hstu
