// The subcommand index of hstu-prepare, and the index that every preparation writes at its end.
#pragma once

#include <CLI/CLI.hpp>

#include "hstu/dataset/anchor_index.h"

namespace hstu {

// hstu prepare index DATASET: stores an anchor index of an existing dataset.
void add_index_command(CLI::App& app);

// --min-history and --window-seconds, with the values of `rule` as defaults.
void add_anchor_options(CLI::App& command, AnchorRule& rule);

// Stores the index of a dataset after its preparation. A rule that yields no anchor causes a note, not an
// error: the dataset is complete without an index.
void store_first_index(const Path& dataset, const AnchorRule& rule);

}  // namespace hstu
