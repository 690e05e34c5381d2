// The ids of a batch in the order in which they travel to the ranks that own their rows, computed by the
// threads that prepare batches.
#pragma once

#include <functional>
#include <vector>

#include "hstu/batching/batch.h"
#include "hstu/batching/batch_layout.h"
#include "hstu/experiment/learner.h"

namespace hstu {

// Adds the route of each feature to a batch. `owners`: of each feature's table.
void add_routes(const std::vector<FeatureSpec>& features, const std::vector<RowOwners>& owners, Batch& batch);

// LoaderOptions::finish for the batches of a learner: adds routes where its tables need them.
std::function<void(Batch&)> with_routes(const Learner& learner);

}  // namespace hstu
