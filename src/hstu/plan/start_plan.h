// What a run plans before its first step, and refuses if it cannot fit.
#pragma once

#include "hstu/options/options.h"

namespace hstu {

// UsageError if a run by `ranks` ranks does not fit the device that the options name; `ranks_here` of them
// share the memory of this machine. With several ranks prints how they share the tables.
void check_fits(const RunOptions& options, int ranks, int ranks_here);

}  // namespace hstu
