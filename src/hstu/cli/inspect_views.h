// What `hstu inspect` prints of a folder: what a reader wants to know, on one screen. `json`: what --json
// prints of it.
#pragma once

#include <string>

#include "hstu/base/json.h"
#include "hstu/run/folder.h"

namespace hstu {

// Counts, meaning of the columns, their sizes.
std::string dataset_view(const Json& json);
// Result, curves of the loss and of metrics, and the configuration where it differs from the defaults.
std::string run_view(const Json& json, const RunFolder& run);
// Progress, evaluation, tables and files.
std::string checkpoint_view(const Json& json);

}  // namespace hstu
