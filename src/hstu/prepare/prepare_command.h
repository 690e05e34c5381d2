// The subcommands yambda, movielens, kuairand, parquet, mlcommons and index of hstu-prepare.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// Parsing the command line runs the chosen subcommand, which prints the final table.
void add_prepare_commands(CLI::App& app);

}  // namespace hstu
