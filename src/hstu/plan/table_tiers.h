// The choice of place = "auto": where the rows of each table are, so that training fits the device.
#pragma once

#include "hstu/options/options.h"
#include "hstu/plan/memory_plan.h"

namespace hstu {

// The options with another place in place of every "auto"; `plan` is that of the options, and `room` the
// bytes of the device for all that it counts. All such tables are on the device if the plan fits it, bounds
// included. Otherwise the smaller ones are there as long as the others have room for the rows of two steps;
// the others share the rest as caches, in proportion to their bytes, or are on the host if that is too
// little. Of several ranks, tables that are not divided by rows are on the devices.
RunOptions with_places(const RunOptions& options, const MemoryPlan& plan, std::int64_t room);

// The same for a device, whose plan it makes if there is an "auto". On a CPU, and on a device of which
// nothing is known, every table is in its memory. Throws UsageError as plan_memory() does.
RunOptions with_places(const RunOptions& options, const PlannedDevice& device, int ranks = 1);

}  // namespace hstu
