// The part of verify() (prepare/verify.h) for MLCommons' layout.
#pragma once

#include <vector>

#include "hstu/base/files.h"
#include "hstu/events/file_verdict.h"

namespace hstu {

// `cache` must contain store_meta.json.
std::vector<FileVerdict> verify_mlcommons(const Path& cache);

// Compares the tables beside the caches of a folder that the reference or hstu has prepared,
// train_sessions.parquet, session_index.parquet and test_events.parquet, with a cache of the same folder.
// Nothing if none of them is there. Reads each once.
std::vector<FileVerdict> verify_mlcommons_tables(const Path& folder, const Path& cache);

}  // namespace hstu
