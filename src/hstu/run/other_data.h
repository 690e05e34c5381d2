// A run's model on other data than the dataset that it was trained on.
#pragma once

#include "hstu/checkpoint/checkpoint.h"
#include "hstu/dataset/dataset.h"
#include "hstu/options/options.h"

namespace hstu {

// Why the weights of an export were saved. Its own dataset has the schema.
inline constexpr const char* kExportReason = "export";

// The options with the rows of every table as the checkpoint has them. Where a configuration leaves them to
// the dataset (rows = 0), another dataset would give other numbers.
RunOptions with_table_rows(RunOptions options, const Checkpoint& checkpoint);

// Throws UsageError naming the difference unless the model of the checkpoint can read `data`: it is the
// dataset of the run, or has its schema as the checkpoint has it. Earlier checkpoints do not: there the
// dataset at `run_data`, the run's data.path, has the schema if it is still that of the run.
void check_readable(const Checkpoint& checkpoint, const Path& run_data, const Dataset& data);

}  // namespace hstu
