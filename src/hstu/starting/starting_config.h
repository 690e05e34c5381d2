// A configuration to start from, made for one dataset, with the reasons as comments.
#pragma once

#include <string>

#include "hstu/starting/dataset_profile.h"
#include "hstu/task/kind.h"

namespace hstu {

// TOML that `hstu train` takes as it is, for a model of this kind. A pure function of the profile. UsageError
// if the kind proposes none. `codes`: of the items, for kinds that have codes.
std::string starting_config(const DatasetProfile& profile, const Kind& kind, const Path& codes = {});

}  // namespace hstu
