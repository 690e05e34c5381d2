// SIGINT and SIGTERM end the program immediately and remove its unfinished output.
#pragma once

namespace hstu {

// Call it first in main(): threads that already exist would still receive the signals. From then on a thread
// waits for them; on a signal, it removes every uncommitted StagedFolder, prints a message, and ends the
// program with status 128 + the signal's number (130 and 143). Work that is blocked in a read or a sort
// need not cooperate. A program whose folder is committed has two seconds to end by itself.
void stop_cleanly_on_signals();

}  // namespace hstu
