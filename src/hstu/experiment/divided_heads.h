// Heads that the ranks of a tensor group share (ranks.tensor), and the groups of ranks that a run has.
#pragma once

#include <memory>

#include "hstu/comm/groups.h"
#include "hstu/model/model.h"
#include "hstu/options/options.h"

namespace hstu {

// The ranks of a tensor group in a run of so many. One rank has all heads, whatever the configuration says:
// it evaluates and predicts with what others have trained.
int tensor_ranks(const RunOptions& options, int ranks);

// The same of a context group; 0 in the options, which no plan has replaced yet, is 1.
int context_ranks(const RunOptions& options, int ranks);

// Throws UsageError, naming field and value, unless the ranks can form such groups. A run that trains is
// asked of one rank too.
void check_tensor_ranks(const RunOptions& options, int ranks);
// The same of the model, which then has what rank `rank` of `ranks` needs of its heads: before it is moved.
void divide_heads(const RunOptions& options, Model& model, int rank, int ranks);

// The groups of this rank, of ranks that share heads or the tokens of long samples (ranks.context); null
// where every rank has all of both. All ranks call it together; the members of `world` must outlive it.
// Throws UsageError, naming field and value, where the model or the ranks cannot be divided so.
std::unique_ptr<DividedRanks> divide_ranks(const RunOptions& options, const Model& model, const Group& world);

}  // namespace hstu
