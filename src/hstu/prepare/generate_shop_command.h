// The command line `generate shop ...`.
#pragma once

#include <CLI/CLI.hpp>

namespace hstu {

// Adds the subcommand `shop` to `generate`; its callback runs generate_shop, whose errors pass through.
void add_generate_shop_command(CLI::App& generate);

}  // namespace hstu
