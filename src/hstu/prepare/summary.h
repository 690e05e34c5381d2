// The table that ends a preparation.
#pragma once

#include "hstu/base/files.h"

namespace hstu {

// Prints counts, events by action, the range of ids and times, and the size of a dataset, so that a mistake
// in its schema is seen.
void print_dataset_summary(const Path& dataset);

}  // namespace hstu
