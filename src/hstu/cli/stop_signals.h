// SIGINT, SIGTERM, SIGHUP and SIGUSR1: the first one asks a command to stop; a second one ends the program at
// once if it is SIGINT or SIGTERM.
#pragma once

#include <atomic>

namespace hstu {

// From then on the first signal sets the result. One for the whole program.
const std::atomic<bool>& watch_stop_signals();
// The signal that came, or 0.
int stop_signal();

}  // namespace hstu
