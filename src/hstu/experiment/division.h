// How ranks divide the samples of a batch (training.balance).
#pragma once

#include <cstdint>
#include <span>

#include "hstu/balance/partition.h"
#include "hstu/batching/batch_division.h"
#include "hstu/model/layer_flops.h"
#include "hstu/model/model.h"
#include "hstu/options/options.h"

namespace hstu {

// Ranks of a context group, which share the work of samples of more than `above` tokens, and of a tensor
// group, which share that of all samples.
struct ContextShare {
  int ranks = 1;
  std::int64_t above = 0;
  int tensor = 1;
};

// Of a run on `ranks`, which its groups may not divide: then none.
ContextShare context_share(const RunOptions& options, int ranks);

// `tokens`: of each sample, at most. The work of a sample is that of the layers of `stack`; without layers,
// its tokens. A batch that Balance::nvidia cannot divide evenly is divided as by Balance::work.
Division divide_batch(Balance balance, const HstuStackConfig& stack, std::span<const std::int64_t> tokens,
                      int ranks, const ContextShare& context = {});

// How the ranks of a run of the model divide its training batches.
DivisionRule division_of(const RunOptions& options, const Model& model, int ranks);

}  // namespace hstu
