// How a process joins the group that its launcher has made.
#pragma once

#include <memory>
#include <string>

#include "hstu/base/files.h"
#include "hstu/comm/communicator.h"

namespace hstu {

// Where a rank that run_local_ranks() started finds the others.
struct LocalRank {
  int rank = 0, ranks = 1;
  int port = 0;       // of this machine's loopback address
  int listener = -1;  // rank 0: the descriptor that listens on it
  int joining = -1;   // a descriptor that the rank closes when it has met all others
  int token = -1;     // a descriptor that has the group's token
};
std::string join_argument(const LocalRank& local);  // "--join=..."

struct JoinedRanks {
  std::unique_ptr<Communicator> comm;  // null: a process on its own
  std::string launcher;                // "hstu --ranks", "torchrun", "SLURM", "MPI"
  int on_this_machine = 1;             // ranks; they share its cores
};

// `join`: the value of --join; "": the launcher is found by its variables:
//   torchrun   RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (the ranks meet at the next port), LOCAL_WORLD_SIZE
//   mpirun     OMPI_COMM_WORLD_SIZE or PMI_SIZE: MPI, through libhstu_mpi.so beside the program
//   prun       PMIX_RANK without SLURM's: MPI too
//   srun       with any --mpi: SLURM_PROCID, SLURM_NTASKS, SLURM_STEP_NODELIST, SLURM_JOB_ID
// `beside`: a path of this command that is the same for all ranks: the token of a group that torchrun or srun
// started is in a hidden file beside it, unless HSTU_TOKEN has one. A group of one rank is a process on its
// own. UsageError if the group is not complete within 60 s.
JoinedRanks join_group(const std::string& join, const Path& beside);

}  // namespace hstu
