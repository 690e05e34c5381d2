// A run's model on other data than the dataset that it was trained on.
#pragma once

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/options/options.h"

namespace hstu {

// The options with the rows of every table as the checkpoint has them. Where a configuration leaves them to
// the dataset (rows = 0), another dataset would give other numbers.
RunOptions with_table_rows(RunOptions options, const Checkpoint& checkpoint);

// Throws UsageError naming the difference unless the model of the checkpoint can read `data`: it is the
// dataset of the run, or has the schema of the one at `run_data`, the run's data.path.
void check_readable(const Checkpoint& checkpoint, const Path& run_data, const Dataset& data);

}  // namespace hstu
