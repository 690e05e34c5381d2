// The command line of `hstu`.
#pragma once

namespace hstu {

// Exit status: 0 success, 1 the run failed, 2 wrong arguments or configuration.
int run_program(int argc, char** argv);

}  // namespace hstu
