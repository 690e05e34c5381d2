// What a run plans before its first step, and refuses if it cannot fit.
#pragma once

#include "hstu/options/options.h"

namespace hstu {

// The options, after a check that a run of them by `ranks` ranks fits the device that they name; `ranks_here`
// of them share the memory of this machine. With several ranks tells how they share the tables.
const RunOptions& fitting(const RunOptions& options, int ranks, int ranks_here);

}  // namespace hstu
