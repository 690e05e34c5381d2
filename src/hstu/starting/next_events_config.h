// A configuration to start from for models that predict a user's next event.
#pragma once

#include <string>

#include "hstu/starting/dataset_profile.h"
#include "hstu/task/kind.h"

namespace hstu {

// As starting_config(), whose caller has made sure that the kind proposes its lines of [model].
std::string next_events_config(const DatasetProfile& profile, const Kind& kind, const Path& codes);

}  // namespace hstu
