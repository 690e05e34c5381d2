// hstu prepare parquet --suggest
#pragma once

#include <vector>

#include "hstu/base/files.h"

namespace hstu {

// Writes the suggested schema of the files, and of the largest file of folders and those with the same
// columns, to `output`, or to standard output if it is empty. UsageError if `output` exists or a folder
// contains no such file; otherwise as suggest_schema().
void write_suggestion(const std::vector<Path>& inputs, const Path& output);

}  // namespace hstu
