// The metrics of ranked targets, of all and of parts of them.
#pragma once

#include "hstu/objective/evaluation_result.h"
#include "hstu/objective/objective.h"
#include "hstu/objective/retrieval_tally.h"

namespace hstu {

// rank_metrics() of all targets in result.model, and in result.parts those of the targets whose event has the
// time of the one before it ("tied") and of the others ("not_tied"), and of the targets by how often training
// has their item ("head", "torso", "tail": metrics/item_groups.h), if the question has counts of items. Parts
// without targets are left out. Of models that find groups of items, such as tuples of codes, "tuple" has the
// metrics of the places of groups, which exceed those of items where groups have several.
void measure_retrieval(const RankedTargets& targets, const ListQuestion& question, EvaluationResult& result);

}  // namespace hstu
