// Tokens against heads: where the ranks of a group share the rows of some samples, attention needs all rows
// of a sample, but no other heads than its own. All ranks of the group call an operation together, and so do
// the backward passes; each operation is the other's backward pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/base/column_range.h"
#include "hstu/comm/groups.h"
#include "hstu/ops/columns.h"

namespace hstu::ops {

// Consecutive rows that one rank has.
struct RowRun {
  std::int32_t rank = 0;
  std::int64_t first = 0, rows = 0;
};

// Rows of which every rank of a group has some, in their order. T: of all ranks; T_r: of this one.
struct DividedRows {
  std::vector<std::int64_t> of_ranks;  // (ranks) rows of each; may be 0
  std::vector<RowRun> runs;            // all T rows; a swap has a message for each
  std::int64_t own = 0;                // T_r

  std::int64_t all() const { return runs.empty() ? 0 : runs.back().first + runs.back().rows; }
  std::int64_t mine() const { return own; }
};

// rank_of_row: (T) the rank that has each row.
DividedRows divided_rows(std::span<const std::int32_t> rank_of_row, const Group& group);

// H heads of D columns, as the ranks of a group share them: in order, as evenly as can be.
struct SharedHeads {
  std::int64_t heads = 0, head_dim = 0;
  Group group;

  ColumnRange heads_of(int rank) const {
    return {heads * rank / group.size(), heads * (rank + 1) / group.size()};
  }
  std::int64_t mine() const { return heads_of(group.rank()).width(); }  // H_r
};

// y (T, H_r * D): this rank's heads of all rows, from x (T_r, H * D): all heads of this rank's rows. Proper
// columns of a variable may be an operand once. Where the value of y is dropped, all ranks drop it, and read
// it at the same place of their backward passes.
Variable swap_to_heads(Tape& tape, const Columns& x, const DividedRows& rows, const SharedHeads& heads);

// y (T_r, H * D) from x (T, H_r * D).
Variable swap_to_rows(Tape& tape, const Variable& x, const DividedRows& rows, const SharedHeads& heads);

}  // namespace hstu::ops
