// The subcommand index of hstu-prepare, and the options of an index that preparations have too.
#pragma once

#include <CLI/CLI.hpp>

#include "hstu/dataset/anchor_index.h"

namespace hstu {

// hstu prepare index DATASET: stores an anchor index of an existing dataset.
void add_index_command(CLI::App& app);

// --min-history and --window-seconds, with the values of `rule` as defaults.
void add_anchor_options(CLI::App& command, AnchorRule& rule);

}  // namespace hstu
