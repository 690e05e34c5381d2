// The dense parameters when each rank updates a shard of them (ranks.shard_optimizer).
#pragma once

#include <vector>

#include "hstu/comm/communicator.h"
#include "hstu/comm/device_transport.h"
#include "hstu/optimizer/dense_optimizer.h"

namespace hstu {

// After an update: every rank gets the values of all shards. `gpus` joins the GPUs that have them; null: they
// are on processors. All ranks call it together, as the next one.
void gather_values(const DenseOptimizer& optimizer, Communicator& comm, DeviceTransport* gpus);

// Rank 0 gets the state of all shards, the `whole` of optimizer_section(); the others get nothing.
std::vector<Tensor> gather_state(const DenseOptimizer& optimizer, Communicator& comm);

}  // namespace hstu
