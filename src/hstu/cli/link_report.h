// What `hstu doctor --ranks` prints: the speed of messages between every two ranks.
#pragma once

#include <string>

#include "hstu/comm/communicator.h"

namespace hstu {

// All ranks call it together; rank 0 prints, JSON or tables in GB/s. Through the host's memory, and between
// GPUs where every rank has one of its own.
void report_links(Communicator& comm, const std::string& launcher, bool json);

}  // namespace hstu
