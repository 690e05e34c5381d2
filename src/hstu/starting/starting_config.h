// A configuration to start from, made for one dataset, with the reasons as comments.
#pragma once

#include <string>

#include "hstu/starting/dataset_profile.h"

namespace hstu {

// TOML that `hstu train` takes as it is. A pure function of the profile.
std::string starting_config(const DatasetProfile& profile);

}  // namespace hstu
