// Ranks as processes of this machine, which one process starts and watches.
#pragma once

#include <string>
#include <vector>

namespace hstu {

// Exit status of a rank that ends because another one has ended; the cause is that one's.
inline constexpr int kLostRankStatus = 76;

// Runs `program` with `arguments` and "--join=..." (join.h) once for each rank, and waits for all. SIGINT and
// SIGTERM go to rank 0, which ends all ranks together; the second one ends them at once. When a rank fails,
// the others have `grace_seconds` to end by themselves, or none if not all ranks have met. Returns the exit
// status of the first rank that failed, 1 for a rank that was killed, which is named on stderr, otherwise
// that of rank 0. Error if a process cannot be started.
int run_local_ranks(int ranks, const std::string& program, const std::vector<std::string>& arguments,
                    double grace_seconds = 20);

}  // namespace hstu
