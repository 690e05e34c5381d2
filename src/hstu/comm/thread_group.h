// A group of ranks that are threads of one process: the specification of every distributed form, and how sums
// over ranks are tested without a launcher.
#pragma once

#include <functional>

#include "hstu/comm/communicator.h"

namespace hstu {

// Runs body(communicator) on `ranks` threads, each with the communicator of its own rank. When a body throws,
// every other rank's next collective throws too; the first exception is rethrown here after all have ended.
void run_ranks(int ranks, const std::function<void(Communicator&)>& body);

}  // namespace hstu
