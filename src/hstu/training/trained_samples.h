// Which samples a run has trained on, by what they are: for evaluations on data that may overlap its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hstu/batching/schedule.h"
#include "hstu/experiment/task_data.h"
#include "hstu/options/options.h"

namespace hstu {

// (n) 1 for each of the samples at `positions` (n) of `other` whose user, item and time are those of a sample
// that a run of these options has trained on `own` before the batch at `next`. One pass over those.
std::vector<std::uint8_t> trained_samples(const RunOptions& options, const TaskData& own, BatchCursor next,
                                          const Dataset& other, std::span<const std::int64_t> positions);

}  // namespace hstu
