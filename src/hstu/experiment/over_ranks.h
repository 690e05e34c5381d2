// What ranks share of a step or an evaluation besides gradients: counts, samples, bad ids. One rank: nothing
// moves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/json.h"
#include "hstu/batching/batch.h"
#include "hstu/comm/communicator.h"
#include "hstu/embedding/table_set.h"
#include "hstu/metrics/ranking.h"
#include "hstu/run/results.h"

namespace hstu {

// The loss, samples, tokens and FLOPs of this rank become those of the global batch.
void sum_over_ranks(StepResult& result, Communicator& comm);

// The samples, the values and the counts of all ranks, in the order of ranks.
RankingSamples gather(const RankingSamples& samples, Communicator& comm);
// The samples in the order of `places`: (samples) of the global batch, which may repeat; of one rank unused.
RankingSamples gather_in_order(const RankingSamples& samples, std::span<const std::int64_t> places,
                               Communicator& comm);
std::vector<Json> gather(const std::vector<Json>& values, Communicator& comm);
std::vector<BadIdCount> gather(const std::vector<BadIdCount>& counts, Communicator& comm);

// The rows of each table, each counted once.
std::vector<std::int64_t> rows_alive(const TableSet& tables, Communicator& comm);

}  // namespace hstu
