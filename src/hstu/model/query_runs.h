// How the ranks of a context group divide the tokens of a long sample, and the attention of them where they
// do not divide its heads.
#pragma once

#include <cstdint>
#include <vector>

#include "hstu/model/stack_samples.h"

namespace hstu {

// A sample in 2 p pieces of neighbouring tokens, of p ranks: rank r has the pieces r and 2 p - 1 - r. Under a
// causal mask its queries see about as many keys as those of any other rank.
struct TokenPieces {
  std::int64_t tokens = 0;
  int ranks = 1;

  struct Range {
    std::int64_t begin = 0, end = 0;
    bool has(std::int64_t token) const { return begin <= token && token < end; }
  };
  // The first (half 0) or the second piece of a rank.
  Range of(int rank, int half) const;
  int rank_of(std::int64_t token) const;
};

// The runs of this rank's queries of the samples: of all their tokens, or of the wanted ones alone. `like`:
// as StackTokens of the samples in all but the lists.
ops::QueryRuns query_runs(const std::vector<StackSample>& samples, bool wanted, const Group& group,
                          StackTokens like, DType type, const Context& context);

}  // namespace hstu
