// Messages over TCP: one connection for each pair of ranks. For ranks of one machine and for launchers that
// give each process its rank and the address of rank 0 (torchrun, SLURM).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "hstu/comm/socket.h"
#include "hstu/comm/transport.h"

namespace hstu {

// Where and how the ranks of a group find each other.
struct Meeting {
  int rank = 0, ranks = 1;
  std::string host;         // of rank 0: a name or an address
  int port = 0;             // on which rank 0 listens
  std::uint64_t token = 0;  // equal on all ranks of a group; connections without it are refused
  Socket listener = {};     // rank 0: a socket that listens already; otherwise it opens one on `port`
  double seconds = 60;      // by when all must have come
};

// Returns when every rank is connected to every other one. Throws UsageError naming the ranks, or the host
// and port, that could not be reached in time, and a rank whose number or group size does not fit.
std::unique_ptr<Transport> tcp_transport(Meeting meeting);

}  // namespace hstu
