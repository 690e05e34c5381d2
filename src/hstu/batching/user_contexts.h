// Contexts of models whose every event asks for the next one: they belong to the user.
#pragma once

#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// UsageError, naming the feature, the column and the user, unless all events of each user have the same value
// in every context column that the features read, and for the keys item, hour, weekday and attributes: an
// event of the history would contain what comes after it. Unknown names are refused elsewhere. One pass over
// each column.
void check_user_contexts(const Dataset& dataset, const std::vector<ContextualFeature>& features);

}  // namespace hstu
