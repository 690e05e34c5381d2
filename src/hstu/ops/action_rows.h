// The rows an action encoder starts from.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/tensor/tape.h"

namespace hstu::ops {

// y (n + 1, bits * A): row i is the concatenation over the action bits of [actions[i] has the bit] *
// table[bit] (table is (bits, A)); the last row is `target` (1, bits * A), what a candidate shows in place of
// its own action.
Variable action_rows(Tape& tape, const Variable& table, const Variable& target,
                     std::vector<std::uint8_t> actions, std::vector<std::uint8_t> bits);

}  // namespace hstu::ops
