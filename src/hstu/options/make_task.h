// The task of a configuration, made by the kind of model that it names.
#pragma once

#include "hstu/options/options.h"
#include "hstu/task/task.h"

namespace hstu {

struct DatasetFacts;

// Throws UsageError where the configuration and the dataset do not fit.
Task make_task(const RunOptions& options, const DatasetFacts& facts);

}  // namespace hstu
