// Messages over TCP: one connection for each pair of ranks. For ranks of one machine and for launchers that
// give each process its rank and the address of rank 0 (torchrun, SLURM).
#pragma once

#include <memory>

#include "hstu/comm/rendezvous.h"
#include "hstu/comm/transport.h"

namespace hstu {

// Returns when every rank is connected to every other one. Throws what connect_ranks() throws.
std::unique_ptr<Transport> tcp_transport(Meeting meeting);

}  // namespace hstu
