// SIGINT and SIGTERM: the first one asks a command to stop, a second one ends the program at once.
#pragma once

#include <atomic>

namespace hstu {

// From then on the first signal sets the result. One for the whole program.
const std::atomic<bool>& watch_stop_signals();
// The signal that came, or 0.
int stop_signal();

}  // namespace hstu
