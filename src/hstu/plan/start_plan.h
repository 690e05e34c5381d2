// What a run plans before its first step, and refuses if it cannot fit.
#pragma once

#include "hstu/experiment/task_data.h"

namespace hstu {

// UsageError if a run by `ranks` ranks does not fit the device that the options name; `ranks_here` of them
// share the memory of this machine. With several ranks prints how they share the tables. `data`: of the
// options. Returns the bytes that the pool of the passes will have handed out at most in a step: what
// memory_peak_mib of a train line measures, without rows.
std::int64_t check_fits(const RunOptions& options, const TaskData& data, int ranks, int ranks_here);

}  // namespace hstu
