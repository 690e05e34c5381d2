// The subcommands yambda, movielens, parquet, mlcommons and index of hstu-prepare.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// A subcommand does its work while `app` parses, and prints the closing table.
void add_prepare_commands(CLI::App& app);

}  // namespace hstu
