// Which context columns a model reads.
#pragma once

#include <vector>

#include "hstu/dataset/manifest.h"
#include "hstu/options/options.h"

namespace hstu {

// For each context column of the dataset, whether a request must have it: contextual features read it.
std::vector<bool> context_of_requests(const RunOptions& options, const Manifest& manifest);
// Whether the events of a history must have it.
std::vector<bool> context_of_events(const RunOptions& options, const Manifest& manifest);

}  // namespace hstu
