// The subcommand verify of hstu-prepare.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// hstu prepare verify PATH: prints a line for every file; throws Error if any check fails.
void add_verify_command(CLI::App& app);

}  // namespace hstu
