// The subcommand verify of hstu-prepare.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// hstu prepare verify PATH: prints a line for every file; throws Error when any is not as it should be.
void add_verify_command(CLI::App& app);

}  // namespace hstu
