// The metrics of ranked targets, of all and of parts of them.
#pragma once

#include "hstu/objective/evaluation_result.h"
#include "hstu/objective/objective.h"
#include "hstu/objective/retrieval_objective.h"
#include "hstu/objective/retrieval_tally.h"

namespace hstu {

// The places of the targets in the lists that `left_out` describes: those of all items, or those of the items
// that the user has not had, of which a repeated target is none.
std::vector<ListPlace> places_in_lists(const RankedTargets& targets, SeenItems left_out);

// rank_metrics() of all targets in result.model, and in result.parts those of the targets whose event has the
// time of the one before it ("tied") and of the others ("not_tied"), of those that the user has had
// ("repeated") and of the others ("new"), and of the targets by how often training has their item ("head",
// "torso", "tail": metrics/item_groups.h), if the question has counts of items. Parts without targets are
// left out. "with_seen" and "without_seen" have the metrics of all targets in both lists. Of models that find
// groups of items, such as tuples of codes, "tuple" has the metrics of the places of groups, which exceed
// those of items where groups have several. result.unanswered has the targets without a rank.
void measure_retrieval(const RankedTargets& targets, SeenItems left_out, const ListQuestion& question,
                       EvaluationResult& result);

}  // namespace hstu
