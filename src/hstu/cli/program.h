// The program `hstu`: words to calls.
#pragma once

namespace hstu {

// Exit status: 0 done, 1 the run failed, 2 the user's words or configuration are wrong.
int run_program(int argc, char** argv);

}  // namespace hstu
