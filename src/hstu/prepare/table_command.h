// The subcommands to-csv, from-csv and to-npy of hstu-prepare: tables that hstu predict reads and writes as
// Parquet, and vectors that hstu import reads.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

void add_table_commands(CLI::App& app);

}  // namespace hstu
