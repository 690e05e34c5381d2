// Parquet logs for the rows of tests/hostile: columns user, item, at, kind, seconds.
#pragma once

#include <string>

#include "hstu/base/files.h"

namespace hstu {

void write_good_parquet(const Path& file);

// The good log with one thing changed; `name` is one of the names in parquet_inputs.cc.
void write_hostile_parquet(const std::string& name, const Path& file);

}  // namespace hstu
