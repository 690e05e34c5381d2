// The end of a run says on the terminal what its log counted: ids that were outside their tables.
#pragma once

#include <string>
#include <vector>

#include "hstu/batching/bad_ids.h"
#include "hstu/objective/evaluation_result.h"

namespace hstu {

// A table of features with such ids, and what to do; "" if there are none. `training`: of all steps;
// `evaluation`: the last one, or nullptr.
std::string bad_id_warning(const std::vector<BadIds::Feature>& training, const EvaluationResult* evaluation);

}  // namespace hstu
