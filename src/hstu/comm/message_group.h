// The collectives of a group of processes, made of messages.
//
// MPI's own collectives may add in another order from run to run, and they say nothing while they wait. These
// add in the order of ranks, so that every group has the bits of thread_group.h, and they name the ranks that
// they wait for.
#pragma once

#include <memory>

#include "hstu/comm/communicator.h"
#include "hstu/comm/transport.h"

namespace hstu {

// Throws LostRank if another rank ends, or makes no progress as long as `patience` says.
std::unique_ptr<Communicator> message_group(std::unique_ptr<Transport> transport, Patience patience = {});

}  // namespace hstu
