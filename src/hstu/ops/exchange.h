// Exchanges of rows between the ranks of a group. All ranks of the group call an operation together, with the
// same width W and type, and so do their backward passes. The first two are each
// other's backward pass.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/tensor/tape.h"

namespace hstu::ops {

// (ranks) the number of rows of each rank, where this one has `mine`. An exchange between the hosts of the
// group: once for all operations on the rows.
std::vector<std::int64_t> rows_of_ranks(std::int64_t mine, const Group& group);

// (T, ...): the rows x (T_r, ...) of all ranks, in the order of ranks, of any type and without a gradient.
// `rows` as below.
Tensor gathered_rows(const Tensor& x, const std::vector<std::int64_t>& rows, const Group& group,
                     const Context& context);

// The same of places x (n), i32 or i64, where the ranks before this one have `before` places.
Tensor gathered_places(const Tensor& x, std::int64_t before, const std::vector<std::int64_t>& rows,
                       const Group& group, const Context& context);

// The sum of x over ranks, on every rank, added in the order of ranks; without a gradient. f32 or f64.
Tensor summed_over_ranks(const Tensor& x, const Group& group, const Context& context);

// y (T, W): the rows x (T_r, W) of all ranks, in the order of ranks. `rows`: (ranks) T_r of each, which may
// differ and be 0; their sum is T. `group` outlives the tape. Where y's value is dropped, all ranks exchange
// once more when the backward pass reads it.
Variable all_gather_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& rows,
                         const Group& group);

// y (T_r, W): the rows of this rank in the sum of x (T, W) over ranks, added in the order of ranks: the same
// bits each time. `rows` as above.
Variable reduce_scatter_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& rows,
                             const Group& group);

// y (sum of `received`, W): x (sum of `sent`, W) has sent[r] rows for rank r, one rank after another, and
// rank r gives received[r] rows to this one, which come in the same order. Its backward pass sends rows back.
Variable exchange_rows(Tape& tape, const Variable& x, const std::vector<std::int64_t>& sent,
                       const std::vector<std::int64_t>& received, const Group& group);

}  // namespace hstu::ops
