// The command line `generate yambda ...`.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// Adds the subcommand `generate` with its own subcommand `yambda`; parsing it writes the events (its callback
// runs generate_yambda, whose errors pass through).
void add_generate_command(CLI::App& app);

}  // namespace hstu
