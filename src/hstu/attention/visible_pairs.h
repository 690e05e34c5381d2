// How many pairs of query and key an attention computes: the basis of every count of operations.
#pragma once

#include <cstdint>

#include "hstu/attention/mask.h"

namespace hstu {

// Exactly the pairs (query, key) of one sample of which the query sees the key.
std::int64_t visible_pairs(const SampleMask& mask);
// The same of its last `queries` tokens alone (0 .. mask.n).
std::int64_t visible_pairs(const SampleMask& mask, std::int32_t queries);

// The number that publications divide times by. It is exact except for history under a full causal mask (left
// unlimited, right 0), which counts as half of its square: half a pair a token less.
double conventional_pairs(const SampleMask& mask);

}  // namespace hstu
