// What inspect counts in the columns of a dataset, beside what its manifest says.
#pragma once

#include <string>

#include "hstu/base/files.h"
#include "hstu/base/json.h"
#include "hstu/options/options.h"

namespace hstu {

// {"events_of_a_user": {...}, "pools": [...]}, the pools of the manifest without a room. Reads columns.
// {"problem": "..."} if they cannot be read.
Json dataset_statistics(const Path& dataset);
std::string statistics_view(const Json& statistics);

// How full the histories of a run's samples are, by pool; "" if its dataset cannot be read.
std::string histories_view(const RunOptions& options);

}  // namespace hstu
