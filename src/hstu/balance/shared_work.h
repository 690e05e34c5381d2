// Samples whose work the ranks of a group share, an equal part each, whichever of them has the sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/balance/partition.h"

namespace hstu {

struct SharedWork {
  int group = 1;                     // consecutive ranks; divides the ranks. 1: no work is shared
  std::vector<char> is_shared = {};  // (samples); empty: none
  bool shares(std::int32_t sample) const {
    return group > 1 && !is_shared.empty() && is_shared[static_cast<std::size_t>(sample)] != 0;
  }
};

// balanced_partition(), where the shared samples come first: each goes to the group with the least work so
// far, and there to the ranks in turn. The others go to the rank with the least, of its parts too.
// O(n (log n + ranks)).
Partition balanced_partition(std::span<const std::int64_t> work, int ranks, const SharedWork& shared);

// work_of_ranks() of what the ranks compute.
std::vector<std::int64_t> work_of_ranks(std::span<const std::int64_t> work, const Partition& partition,
                                        const SharedWork& shared);

}  // namespace hstu
