// The dense parameters and their optimizer where ranks have parts of them: shards (ranks.shard_optimizer),
// and the parts of divided parameters.
#pragma once

#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/optimizer/dense_optimizer.h"

namespace hstu {

// After an update: every rank gets the values of all shards. `gpus` joins the GPUs that have them; null: they
// are on processors. All ranks call it together, as the next one. Shards are those of the replicas, by the
// groups of the optimizer's context.
void gather_values(const DenseOptimizer& optimizer, Communicator& comm, DeviceTransport* gpus);

// What sections save of parameters and their optimizer, in host memory. Nothing: what this rank has is whole.
struct DenseState {
  std::vector<Tensor> parameters;  // `whole` of parameters_section()
  std::vector<Tensor> optimizer;   // `whole` of optimizer_section()
};
// Rank 0 gets what the ranks have parts of; the others get nothing.
DenseState gather_state(const DenseOptimizer& optimizer, Communicator& comm);

}  // namespace hstu
