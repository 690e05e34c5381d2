// How the ranks of a run stay together: rank 0 decides what all do next and announces it; the others follow.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/comm/communicator.h"
#include "hstu/experiment/experiment.h"
#include "hstu/run/folder.h"

namespace hstu {

// The time that ranks wait for each other: a notice after 60 s, or after half of a shorter timeout.
Patience patience_of(const RanksSection& ranks);

// What all ranks do next.
enum class Command : std::int64_t { step, share_steps, profile, evaluate, save, end };

void announce(Command command, Communicator& comm);  // by rank 0
Command next_command(Communicator& comm);            // by every other rank, which waits for it

// True on all ranks if `stop` is set on one.
bool any_stops(const std::atomic<bool>* stop, Communicator& comm);

// The checkpoint that rank 0 resumes from: rank 0 passes it, the others read the same one.
std::optional<Checkpoint> same_checkpoint(std::optional<Checkpoint> of_rank_0, const RunFolder& folder,
                                          Communicator& comm);

// Throws on every rank if one has another program, configuration, dataset or step than rank 0, whose
// UsageError names the first such rank and the difference. Returns when all ranks have called it.
void check_agreement(const Experiment& experiment, const std::string& version, std::int64_t step,
                     Communicator& comm);

}  // namespace hstu
