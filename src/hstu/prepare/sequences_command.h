// The subcommand sequences of hstu-prepare: logs that say who had what, in which order.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

void add_sequences_command(CLI::App& app);

}  // namespace hstu
