// The subcommands to-csv and from-csv of hstu-prepare: tables that hstu predict reads and writes as Parquet.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

void add_table_commands(CLI::App& app);

}  // namespace hstu
