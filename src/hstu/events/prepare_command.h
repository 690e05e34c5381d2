// The subcommands yambda, movielens and parquet of hstu-prepare.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// A subcommand prepares its dataset while `app` parses, and prints the closing table.
void add_prepare_commands(CLI::App& app);

}  // namespace hstu
