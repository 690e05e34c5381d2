// The subcommand index of hstu-prepare, and the index that every preparation ends with.
#pragma once

#include <CLI/CLI.hpp>

#include "hstu/dataset/anchor_index.h"

namespace hstu {

// hstu prepare index DATASET: stores an anchor index of an existing dataset.
void add_index_command(CLI::App& app);

// --min-history and --window-seconds, with the values of `rule` as defaults.
void add_anchor_options(CLI::App& command, AnchorRule& rule);

// Stores the index of a dataset just prepared. A rule that leaves no anchor is a notice, not an error: the
// dataset is whole without an index.
void store_first_index(const Path& dataset, const AnchorRule& rule);

}  // namespace hstu
