// Contexts of models whose every event asks for the next one: they belong to the user.
#pragma once

#include <vector>

#include "hstu/batching/options.h"
#include "hstu/dataset/dataset.h"

namespace hstu {

// UsageError, naming the feature, the column and the user, unless all events of each user have the same value
// in every context column that the features read, and for a key that is neither "user" nor a context column:
// what differs between events would tell an event of the history what comes after it. One pass over each
// column.
void check_user_contexts(const Dataset& dataset, const std::vector<ContextualFeature>& features);

}  // namespace hstu
