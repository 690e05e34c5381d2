// Finds the first K items of the whole catalogue for a table of users. docs/predict.md
#pragma once

#include "hstu/predict/predict.h"

namespace hstu {

// predict() with options.users: writes to options.output the options.top items with the highest scores of
// each user that has a history, in order, equal scores by item. Of a model of kind retrieval.
PredictResult find_items(const PredictOptions& options);

}  // namespace hstu
