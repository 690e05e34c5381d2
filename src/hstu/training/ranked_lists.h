// Which held-out samples are one list for NDCG, MRR and recall.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hstu/dataset/dataset.h"

namespace hstu {

// The list of each event at `positions` (n), in any order: a number from 0 on. A list has events of one user:
// all ("user"), those of one time ("time"), one alone ("sample"), or those with one value of the context
// column `by`. An event may be at several places, with its negatives. UsageError naming
// evaluation.ranking_list if `by` is none of these.
std::vector<std::int64_t> ranked_lists(const Dataset& dataset, std::span<const std::int64_t> positions,
                                       std::string_view by);

}  // namespace hstu
