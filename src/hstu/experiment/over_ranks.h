// What ranks share of a step or an evaluation besides gradients: counts, bad ids. One rank: nothing
// moves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/batching/batch.h"
#include "hstu/comm/communicator.h"
#include "hstu/embedding/table_set.h"
#include "hstu/run/step_result.h"

namespace hstu {

// The loss, samples, tokens and FLOPs of this rank become those of the global batch, of each of these steps.
void sum_over_ranks(std::span<StepResult> steps, Communicator& comm);

// The values and the counts of all ranks, in the order of ranks.
std::vector<Json> gather(const std::vector<Json>& values, Communicator& comm);
std::vector<BadIdCount> gather(const std::vector<BadIdCount>& counts, Communicator& comm);

// The rows of each table, each counted once.
std::vector<std::int64_t> rows_alive(const TableSet& tables, Communicator& comm);

}  // namespace hstu
