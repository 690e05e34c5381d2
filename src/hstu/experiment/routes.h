// The ids of a batch in the order in which they travel to the ranks that own their rows, computed by the
// threads that prepare batches.
#pragma once

#include <functional>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/embedding/device_lookup.h"
#include "hstu/experiment/learner.h"

namespace hstu {

// Adds to a batch, for each feature: NAME.sent (n) i64, its distinct ids with those that are read on rank 0
// first; NAME.places (n) i32, the place of each in NAME.ids; NAME.owned (ranks) i64, the number read on each
// rank: n for a table by column. `owners`: of each feature's table.
void add_routes(const std::vector<FeatureSpec>& features, const std::vector<RowOwners>& owners, Batch& batch);

// LoaderOptions::finish for the batches of a learner: adds routes where its tables need them.
std::function<void(Batch&)> with_routes(const Learner& learner);

// The routes of a batch that has them, on its device.
std::vector<Route> routes_of(const std::vector<FeatureSpec>& features, const Batch& batch);

}  // namespace hstu
