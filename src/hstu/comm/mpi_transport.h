// Messages through MPI, for ranks that mpirun or srun has started.
#pragma once

#include <memory>

#include "hstu/comm/transport.h"

namespace hstu {

struct MpiRanks {
  std::unique_ptr<Transport> transport;
  int on_this_machine = 1;  // ranks
};

// Loads libhstu_mpi.so, which the build makes where MPI is installed, from the folder of the program or from
// lib/ beside it. UsageError saying what to install if that fails.
MpiRanks mpi_transport();

}  // namespace hstu
