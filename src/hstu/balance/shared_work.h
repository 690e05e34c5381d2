// Samples whose work several ranks share, an equal part each, whichever of them has the sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/balance/partition.h"

namespace hstu {

// The product of `tensor` and `context` divides the ranks.
struct SharedWork {
  int tensor = 1;                    // consecutive ranks, which share all of their samples
  int context = 1;                   // consecutive groups of `tensor` ranks, which share some of them
  std::vector<char> is_shared = {};  // (samples) those that a context group shares; empty: none

  bool any() const { return tensor > 1 || context > 1; }
  bool shares(std::int32_t sample) const {
    return context > 1 && !is_shared.empty() && is_shared[static_cast<std::size_t>(sample)] != 0;
  }
};

// balanced_partition() over groups, and then within each. The samples of context groups come first: each goes
// to the groups with the least work so far. The others go to the tensor group with the least. The rank of the
// groups that has the least work of its own has the sample. O(n (log n + ranks)).
Partition balanced_partition(std::span<const std::int64_t> work, int ranks, const SharedWork& shared);

// work_of_ranks() of what the ranks compute.
std::vector<std::int64_t> work_of_ranks(std::span<const std::int64_t> work, const Partition& partition,
                                        const SharedWork& shared);

}  // namespace hstu
