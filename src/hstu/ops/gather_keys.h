// Keys or values of other ranks: where the ranks of a group share the rows of some samples, each computes the
// attention of its own queries, and gets the keys that these see.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/comm/groups.h"
#include "hstu/ops/columns.h"

namespace hstu::ops {

// Which rows the ranks of a group give each other. T_r: rows of this rank; K: keys that it needs, some of
// them more than once.
struct DividedKeys {
  std::vector<std::int64_t> given, received;  // (ranks) rows to each rank, and from it; its own too
  Tensor given_rows;  // (sum of given) i32: rows of this rank, for one rank after another
  Tensor places;      // (sum of given) i64: 0, 1, ..
  Tensor keys;        // (K) i32: the received row of each key
  Tensor own;         // (T_r) i32: 0, 1, ..
};

// y (K, W) from x (T_r, W). The backward pass sums the gradients of a row by rank, in the order of ranks: the
// same bits each time. All ranks of the group call it together, and so do the backward passes. Proper columns
// of a variable may be an operand once. Where the value of y is dropped, all ranks drop it, and read it at
// the same place of their backward passes.
Variable gather_keys(Tape& tape, const Columns& x, const DividedKeys& keys, const Group& group);

}  // namespace hstu::ops
