// The command line `generate random ...`.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// Adds the subcommand `random` to `generate`; its callback runs generate_random, whose errors pass through.
void add_generate_random_command(CLI::App& generate);

}  // namespace hstu
