// SIGINT and SIGTERM end the program at once, with nothing half-made left behind.
#pragma once

namespace hstu {

// Call it first of all in main(): threads that exist already would still be hit by the signals. From then on
// a thread waits for them; when one comes, it removes every StagedFolder that is at work, says so, and ends
// the program with status 128 + the signal's number (130 and 143). Work that is blocked in a read or a sort
// need not cooperate.
void stop_cleanly_on_signals();

}  // namespace hstu
