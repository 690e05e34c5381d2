// Exchanges of rows between the ranks of a group. All ranks of the group call an operation together, with the
// same width W and type, and so do their backward passes. Each is the other's backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// (ranks) the number of rows of each rank, where this one has `mine`. An exchange between the hosts of the
// group: once for all operations on the rows.
std::vector<std::int64_t> rows_of_ranks(std::int64_t mine, const Group& group);

// y (T, W): the rows x (T_r, W) of all ranks, in the order of ranks. `rows`: (ranks) T_r of each, which may
// differ and be 0; their sum is T. `group` outlives the tape.
Variable all_gather_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& rows,
                         const Group& group);

// y (T_r, W): the rows of this rank in the sum of x (T, W) over ranks, added in the order of ranks: the same
// bits each time. `rows` as above.
Variable reduce_scatter_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& rows,
                             const Group& group);

}  // namespace hstu::ops
