// The command lines `generate ...`.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// Adds the subcommand `generate` with its own subcommands `yambda` and `random`; parsing one writes the
// events (its callback runs generate_yambda or generate_random, whose errors pass through).
void add_generate_command(CLI::App& app);

}  // namespace hstu
