// The command line of hstu-prepare.
#pragma once

namespace hstu {

// Runs the commands `prepare` and `generate` of hstu. Called by its own name, the program is `hstu prepare`.
// Returns the exit status.
int run_command_line(int argc, char** argv);

}  // namespace hstu
